import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { kept } from "../children.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
const SECRET_ENV = "BENCH_SECRET";
const START_MILLIS_MAX = 60_000;

/** A gateway in a process of its own. */
export interface Gateway {
  readonly url: string;
  readonly adminUrl: string;
  readonly child: ChildProcess;
  /** Folder of its trace. */
  readonly trace: string;
  readonly replica: string;
  end(): Promise<void>;
}

/** Emulated engines behind fixed addresses. */
export interface Engines {
  readonly urls: readonly string[];
  end(): Promise<void>;
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

export async function startEngines(count: number, timeScale: number): Promise<Engines> {
  const base = 20_000 + Math.floor(Math.random() * 10_000);
  const flags = ["emulate", "--count", String(count), "--port-base", String(base), "--time-scale", String(timeScale)];
  const child = kept(spawn(process.execPath, [MAIN, ...flags], { stdio: ["ignore", "ignore", "inherit"] }));
  const urls = Array.from({ length: count }, (_, i) => `http://127.0.0.1:${base + i}`);
  await Promise.all(urls.map((url) => answering(`${url}/health`)));
  return { urls, end: () => ended(child) };
}

/** Where Redis is, "" for a gateway that shares nothing. */
export async function startGateway(
  engines: Engines,
  redis: string,
  settings: readonly string[] = [],
): Promise<Gateway> {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-replicas-"));
  const replica = `replica-${process.pid}-${Math.floor(Math.random() * 1e9)}`;
  const [port, adminPort] = [await freePort(), await freePort()];
  const set = ["log.level=error", `record.directory=${folder}/trace`, `prefix.secretEnv=${SECRET_ENV}`, ...settings];
  if (redis !== "") set.push(`share.url=${redis}`, `share.replica=${replica}`);
  const flags = [
    "serve",
    "--port",
    String(port),
    "--admin-port",
    String(adminPort),
    ...engines.urls.flatMap((url) => ["--endpoint", url]),
  ];
  const child = kept(
    spawn(process.execPath, [MAIN, ...flags, ...set.flatMap((one) => ["--set", one])], {
      stdio: ["ignore", "ignore", "inherit"],
      env: { ...process.env, [SECRET_ENV]: "a secret of the bench" },
    }),
  );
  const url = `http://127.0.0.1:${port}`;
  await answering(`${url}/readyz`);
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  return { url, adminUrl, child, trace: `${folder}/trace`, replica, end: () => ended(child) };
}

async function answering(url: string): Promise<void> {
  const until = performance.now() + START_MILLIS_MAX;
  for (;;) {
    const response = await fetch(url).catch(() => undefined);
    await response?.body?.cancel();
    if (response?.ok === true) return;
    if (performance.now() > until) throw new Error(`nothing answers at ${url}`);
    await pause(50);
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  await gone;
}

/** What a gateway states of what it shares. */
export interface ShareFigures {
  readonly state: string;
  readonly lagMillis?: { readonly p50: number; readonly p99: number };
  readonly peers: readonly { readonly replica: string; readonly requestsInFlight: number }[];
  readonly counts: Readonly<Record<string, number>>;
}

export async function shareOf({ adminUrl }: Pick<Gateway, "adminUrl">): Promise<ShareFigures> {
  return (await (await fetch(`${adminUrl}/gnomon/share`)).json()) as ShareFigures;
}
