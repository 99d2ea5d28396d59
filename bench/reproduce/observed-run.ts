import { rmSync } from "node:fs";
import { join } from "node:path";
import { Program } from "../closed-loop/program.ts";
import { enginePort } from "../engine-group.ts";
import { freePort } from "../free-port.ts";
import { NamingDoors } from "./naming-doors.ts";
import { type Programs, type RouterCase, type RunningRouter, startRouter } from "./routers.ts";

const ENGINES = 4;
const MODEL = "emulated";

/** Emulated engines behind doors that name them. */
class EngineFleet {
  readonly #engines: Program;
  readonly #doors: NamingDoors;

  private constructor(engines: Program, doors: NamingDoors) {
    this.#engines = engines;
    this.#doors = doors;
  }

  static async start(engine: string, seed: number): Promise<EngineFleet> {
    const base = enginePort();
    const flags = { count: ENGINES, "port-base": base, model: MODEL, engine, seed };
    const engines = await Program.start({ command: "emulate", flags }, "gnomon emulates");
    const doors = await NamingDoors.open(Array.from({ length: ENGINES }, (_, i) => base + i));
    return new EngineFleet(engines, doors);
  }

  get addresses(): readonly string[] {
    return this.#doors.addresses;
  }

  get urls(): string[] {
    return this.addresses.map((address) => `http://${address}`);
  }

  async stop(): Promise<void> {
    this.#doors.close();
    await this.#engines.stop();
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
