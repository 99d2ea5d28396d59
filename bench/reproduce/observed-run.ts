import { rmSync } from "node:fs";
import { join } from "node:path";
import { Program } from "../closed-loop/program.ts";
import { freePort } from "../free-port.ts";
import { type Programs, type RouterCase, type RunningRouter, startRouter } from "./routers.ts";

const ENGINES = 4;
const MODEL = "emulated";

/** Emulated engines at addresses of their own and one port, as pods have. */
class EngineFleet {
  readonly #programs: readonly Program[];
  readonly addresses: readonly string[];

  private constructor(programs: readonly Program[], addresses: readonly string[]) {
    this.#programs = programs;
    this.addresses = addresses;
  }

  static async start(engine: string, seed: number): Promise<EngineFleet> {
    const port = await freePort();
    const hosts = Array.from({ length: ENGINES }, (_, i) => `127.0.0.${5 + i}`);
    const programs = await Promise.all(
      hosts.map((host, i) =>
        Program.start(
          { command: "emulate", flags: { count: 1, host, "port-base": port, model: MODEL, engine, seed: seed + i } },
          "gnomon emulates",
        ),
      ),
    );
    return new EngineFleet(
      programs,
      hosts.map((host) => `${host}:${port}`),
    );
  }

  get urls(): string[] {
    return this.addresses.map((address) => `http://${address}`);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#programs.map((one) => one.stop()));
  }
}

export interface RunOptions {
  readonly programs: Programs;
  readonly engine: string;
  /** A specification, of which so many requests are sent. */
  readonly workload: string;
  readonly requests: number;
  readonly folder: string;
  readonly seed: number;
}

/** Sends a workload through a router, or through gnomon itself where none is given, and returns the trace's folder. */
export async function observedRun(one: RouterCase | undefined, options: RunOptions): Promise<string> {
  const { programs, engine, workload, requests, folder, seed } = options;
  const trace = join(folder, "trace");
  rmSync(trace, { recursive: true, force: true });
  const fleet = await EngineFleet.start(engine, seed);
  let router: RunningRouter | undefined;
  let gateway: Program | undefined;
  try {
    router = one && (await startRouter(one, programs, fleet.addresses, folder));
    const port = await freePort();
    const common = { endpoint: fleet.urls, port, "admin-port": await freePort(), record: trace, "log-level": "warn" };
    const order =
      one === undefined || router === undefined
        ? { command: "serve", flags: { ...common, profile: "gnomon" } }
        : { command: "tap", flags: { ...common, router: router.url, name: one.router } };
    gateway = await Program.start(order, "gnomon is ready");
    const url = `http://127.0.0.1:${port}`;
    const sent = { url, spec: workload, limit: requests, model: MODEL, seed, "drain-seconds": 60 };
    await Program.run({ command: "drive", flags: sent }, [0, 1]);
    return trace;
  } finally {
    await gateway?.stop();
    router?.stop();
    await fleet.stop();
  }
}
