import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { kept } from "./children.ts";
import { freePort } from "./free-port.ts";
import { pinned } from "./gateway-process.ts";

const CONFIG = join(import.meta.dirname, "../deploy/envoy.yaml");

/** What the picker is shown: nothing, as there is none; requests, heads of responses and their end; or all bodies.
 * `open` goes on without a picker that is gone, which takes bodies in one piece. */
export type PickerMode = "none" | "requests" | "bodies" | "open";

export interface EnvoyOptions {
  readonly binary: string;
  readonly scratch: string;
  readonly mode: PickerMode;
  readonly picker: number;
  readonly engines: readonly number[];
  /** Answers say which engine they come from, in SERVED_HEADER. */
  readonly namesServed?: true;
}

/** `127.0.0.1:PORT` of the engine that an answer came from. */
export const SERVED_HEADER = "x-bench-served";

/** Envoy with one worker, as deploy/envoy.yaml has it, before these engines. Linux pins it to the first core. */
export async function startEnvoy(options: EnvoyOptions): Promise<{ readonly port: number; readonly pid: number }> {
  const { binary, scratch, mode, picker, engines } = options;
  const port = await freePort();
  const named = [[8000, port], [9002, picker], ...engines.map((engine, i) => [8101 + i, engine])];
  const config = named.reduce(
    (text, [from, to]) => text.replace(`port_value: ${from}}`, `port_value: ${to}}`),
    CHANGES[mode](readFileSync(CONFIG, "utf8")),
  );
  const served = `response_headers_to_add: [{header: {key: ${SERVED_HEADER}, value: "%UPSTREAM_REMOTE_ADDRESS%"}}]`;
  const written = options.namesServed ? config.replace(/^( *)domains: .*$/m, `$&\n$1${served}`) : config;
  const file = join(scratch, `envoy-${port}.yaml`);
  writeFileSync(file, written);
  const argv = ["-c", file, "--concurrency", "1", "-l", "error", "--use-dynamic-base-id"];
  const [command, args] = pinned(0, binary, argv);
  return { port, pid: kept(spawn(command, args, { stdio: ["ignore", "ignore", "inherit"] })).pid! };
}

const CHANGES: Readonly<Record<PickerMode, (config: string) => string>> = {
  none: (config) => {
    const begin = config.indexOf("          - name: envoy.filters.http.ext_proc");
    return config.slice(0, begin) + config.slice(config.indexOf("          - name: envoy.filters.http.router"));
  },
  requests: (config) => config.replace("response_body_mode: FULL_DUPLEX_STREAMED", "response_body_mode: NONE"),
  bodies: (config) => config,
  open: (config) =>
    config
      .replace("request_body_mode: FULL_DUPLEX_STREAMED", "request_body_mode: BUFFERED")
      .replace("response_body_mode: FULL_DUPLEX_STREAMED", "response_body_mode: STREAMED")
      .replaceAll("trailer_mode: SEND", "trailer_mode: SKIP")
      .replace("failure_mode_allow: false", "failure_mode_allow: true"),
};
