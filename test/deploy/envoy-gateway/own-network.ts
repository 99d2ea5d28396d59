import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { until } from "./until.ts";

/** Address of this network on the bridge that joins it to those of programs. */
export const HERE = "10.77.3.1";
const BRIDGE = "programs";

/** A program in a network of its own, as a pod has one: it listens on ports that others have too. */
export interface OwnNetwork {
  /** At most eight letters. */
  readonly name: string;
  readonly address: string;
  readonly program: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** Its output goes there. */
  readonly log: string;
}

function ip(...words: string[]): void {
  execFileSync("ip", words, { stdio: ["ignore", "ignore", "inherit"] });
}

/** Makes the bridge, on which a port of the loopback address is reached too. */
export async function makeBridge(loopbackPort: number): Promise<void> {
  ip("link", "add", BRIDGE, "type", "bridge");
  ip("addr", "add", `${HERE}/24`, "dev", BRIDGE);
  ip("link", "set", BRIDGE, "up");
  const forward = createServer((socket) => {
    const to = connect(loopbackPort, "127.0.0.1");
    socket.on("error", () => to.destroy());
    to.on("error", () => socket.destroy());
    socket.pipe(to).pipe(socket);
  });
  await once(forward.listen(loopbackPort, HERE), "listening");
}

/** Starts a program once its network is joined to the bridge; what it says as it ends goes to standard error. */
export async function startInOwnNetwork({ name, address, program, env, log }: OwnNetwork): Promise<void> {
  const [near, far, pidFile, linked] = [`${name}-n`, `${name}-f`, `${log}.pid`, `${log}.linked`];
  const script = `
echo $$ > "${pidFile}"
until [ -e "${linked}" ]; do sleep 0.1; done
ip link set lo up; ip addr add ${address}/24 dev ${far}; ip link set ${far} up
exec "$@"`;
  const output = openSync(log, "a");
  const argv = ["--net", "--mount", "sh", "-euc", script, name, ...program];
  spawn("unshare", argv, { env, stdio: ["ignore", output, output] }).once("exit", (code) => {
    process.stderr.write(`${name} ended with ${code}: ${readFileSync(log, "utf8").slice(-2_000)}\n`);
  });
  closeSync(output);
  const pid = await until("a network", () => existsSync(pidFile) && readFileSync(pidFile, "utf8").trim());
  ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", pid);
  ip("link", "set", near, "master", BRIDGE);
  ip("link", "set", near, "up");
  writeFileSync(linked, "");
}
