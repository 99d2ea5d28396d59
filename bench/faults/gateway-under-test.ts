import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { kept } from "../children.ts";

/** A gateway in a process of its own, with all that it writes kept in a folder. */
export interface GatewayUnderTest {
  readonly port: number;
  /** Of status pages and administration. */
  readonly adminPort: number;
  readonly pid: number;
  readonly folder: string;
  /** Sum of a metric over its series. */
  readonly metric: (name: string) => Promise<number>;
  readonly page: () => Promise<string>;
  /** Undefined while it runs. */
  readonly exitCode: () => number | undefined;
  /** Ends it without asking (SIGKILL). */
  readonly kill: () => Promise<void>;
  /** Asks it to end; resolves with its exit code. */
  readonly stop: () => Promise<number>;
}

const READY_MILLIS_MAX = 120_000;

export async function startGateway(ports: readonly number[], config: object): Promise<GatewayUnderTest> {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-faults-"));
  const file = join(folder, "config.yaml");
  const endpoints = ports.map((port) => ({ url: `http://127.0.0.1:${port}` }));
  writeFileSync(file, stringify({ listen: { port: 0 }, endpoints, ...config }));
  const main = join(import.meta.dirname, "../../bin/gnomon.js");
  const env = Object.fromEntries(Object.entries(process.env).filter(([key]) => !key.startsWith("GNOMON_")));
  const child = kept(
    spawn(process.execPath, [main, "serve", "--config", file], { stdio: ["ignore", "pipe", "pipe"], env }),
  );
  let output = "";
  const keep = (text: Buffer): void => {
    output += text.toString();
    writeFileSync(join(folder, "output.log"), output.slice(-LOG_CHARS_MAX));
  };
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  let code: number | undefined;
  const ended = new Promise<number>((resolve) => child.once("exit", (exit) => resolve((code = exit ?? -1))));
  const since = performance.now();
  let port = 0;
  while (port === 0) {
    const found = /ready at http:\/\/[^:]+:(\d+)|"url":"http:\/\/[^:"]+:(\d+)/.exec(output);
    if (found !== null) port = Number(found[1] ?? found[2]);
    else if (code !== undefined || performance.now() - since > READY_MILLIS_MAX)
      throw new Error(`no gateway: ${output}`);
    else await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const adminPort = Number(/"adminUrl":"http:\/\/[^:"]+:(\d+)/.exec(output)?.[1]);
  const page = (): Promise<string> => metricsPage(port);
  return {
    port,
    adminPort,
    pid: child.pid!,
    folder,
    page,
    metric: async (name) => sumOf(await page(), name),
    exitCode: () => code,
    kill: async () => {
      child.kill("SIGKILL");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
    stop: async () => {
      child.kill("SIGTERM");
      const exit = await ended;
      rmSync(folder, { recursive: true, force: true });
      return exit;
    },
  };
}

const LOG_CHARS_MAX = 4_000_000;

export async function metricsPage(port: number): Promise<string> {
  return (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
}

export function sumOf(page: string, name: string): number {
  let sum = 0;
  for (const line of page.split("\n")) {
    if (line.startsWith(`${name} `) || line.startsWith(`${name}{`)) sum += Number(line.slice(line.lastIndexOf(" ")));
  }
  return sum;
}

export function residentBytes(pid: number): number {
  return 1024 * Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]);
}
