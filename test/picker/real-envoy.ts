import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";

const ENVOY = process.env["TEST_ENVOY"] ?? "";
export const NO_ENVOY = ENVOY === "" ? "TEST_ENVOY names no binary of Envoy" : false;

export function startEnvoy(t: TestContext, config: string): ChildProcess {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-envoy-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "envoy.yaml");
  writeFileSync(file, config);
  return spawn(ENVOY, ["-c", file, "--concurrency", "1", "-l", "error", "--use-dynamic-base-id"], {
    stdio: "ignore",
  });
}

/** Once something listens there. */
export async function listening(port: number): Promise<void> {
  while (!(await listens(port)));
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const isUp = await new Promise<boolean>((resolve) => {
    socket.on("connect", () => resolve(true)).on("error", () => resolve(false));
  });
  socket.destroy();
  if (!isUp) await new Promise((resolve) => setTimeout(resolve, 50));
  return isUp;
}

export async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

/** A configuration with other ports. */
export function onPorts(config: string, ports: readonly (readonly [from: number, to: number])[]): string {
  let text = config;
  for (const [from, to] of ports) text = text.replace(`port_value: ${from}}`, `port_value: ${to}}`);
  return text;
}
