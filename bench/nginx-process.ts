import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { kept } from "./children.ts";
import { freePort } from "./free-port.ts";
import { pinned } from "./gateway-process.ts";

const NGINX = "/usr/sbin/nginx";

export interface NginxProcess {
  readonly port: number;
  /** The process and its workers. */
  readonly pids: readonly number[];
}

/**
 * Goes round the engines; undefined, with a line that states it, where it is not there. Linux pins it to the first
 * core.
 */
export async function startNginx(
  engines: readonly (number | string)[],
  scratch: string,
): Promise<NginxProcess | undefined> {
  const port = await freePort();
  const addresses = engines.map((one) => (typeof one === "string" ? new URL(one).host : `127.0.0.1:${one}`));
  const file = join(scratch, "nginx.conf");
  writeFileSync(
    file,
    `worker_processes 1; daemon off; pid ${scratch}/nginx.pid; error_log ${scratch}/error.log;
events { worker_connections 4096; }
http {
  access_log off; client_max_body_size 64m; client_body_buffer_size 1m; keepalive_requests 1000000;
  client_body_temp_path ${scratch}/body; proxy_temp_path ${scratch}/proxy;
  fastcgi_temp_path ${scratch}/f; uwsgi_temp_path ${scratch}/u; scgi_temp_path ${scratch}/s;
  upstream engines { ${addresses.map((one) => `server ${one};`).join(" ")} keepalive 256; keepalive_requests 1000000; }
  server { listen 127.0.0.1:${port}; location / {
    proxy_pass http://engines; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } }
}`,
  );
  const [command, args] = pinned(0, NGINX, ["-c", file]);
  const nginx = kept(spawn(command, args, { stdio: "ignore" }));
  const failed = await new Promise<boolean>((resolve) => {
    nginx.once("error", () => resolve(true));
    nginx.once("exit", () => resolve(true));
    setTimeout(() => resolve(false), 500);
  });
  if (failed) {
    console.log(`${NGINX} is not there or does not run: left out`);
    return undefined;
  }
  const workers = readFileSync(`/proc/${nginx.pid}/task/${nginx.pid}/children`, "utf8").trim().split(" ").map(Number);
  return { port, pids: [nginx.pid!, ...workers] };
}
