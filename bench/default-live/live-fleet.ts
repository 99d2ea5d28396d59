import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import type { EmulatorStats } from "#emulator/server.ts";
import { type CoreSeconds, Program } from "../closed-loop/program.ts";
import { FLEETS, MODEL_TOKENS_MAX } from "../profiles/run-case.ts";
import type { LiveCase } from "./live-case.ts";

export const MODEL = "emulated";
const ENGINE_FILES = join(import.meta.dirname, "../../config/engines");
/** Ports between two kinds of engines. */
const PORTS_APART = 16;

/** Steps that ended so far, and how late on the wall clock in all, in milliseconds. */
export interface Lateness {
  readonly steps: number;
  readonly millis: number;
}

/** Emulated engines in a process each; those of a mixed board in turns, as the simulator has them. */
export class LiveFleet {
  readonly urls: readonly string[];
  readonly #programs: readonly Program[];

  private constructor(urls: readonly string[], programs: readonly Program[]) {
    this.urls = urls;
    this.#programs = programs;
  }

  /** The engines' ports are `port` and above. */
  static async start(one: LiveCase, port: number, folder: string): Promise<LiveFleet> {
    const kinds = [...new Set(FLEETS[one.fleet])];
    const count = one.engines / kinds.length;
    if (one.fleet === "sizes" || !Number.isInteger(count))
      throw new RangeError(`a ${one.fleet} fleet of ${one.engines} is not emulated here`);
    const programs = await Promise.all(
      kinds.map((kind, i) => {
        const flags = { count, "port-base": port + PORTS_APART * i, model: MODEL, engine: engineFile(kind, folder) };
        return Program.start(
          { command: "emulate", flags: { ...flags, seed: 1, "time-scale": one.timeScale } },
          "gnomon emulates",
        );
      }),
    );
    const ports = Array.from(
      { length: one.engines },
      (_, i) => port + PORTS_APART * (i % kinds.length) + Math.floor(i / kinds.length),
    );
    return new LiveFleet(
      ports.map((own) => `http://127.0.0.1:${own}`),
      programs,
    );
  }

  async lateness(): Promise<Lateness> {
    const all = await Promise.all(this.urls.map(lagOf));
    return {
      steps: all.reduce((sum, { steps }) => sum + steps, 0),
      millis: all.reduce((sum, { steps, mean }) => sum + steps * mean, 0),
    };
  }

  coreSeconds(): CoreSeconds {
    const all = this.#programs.map((program) => program.coreSeconds());
    return {
      ran: all.reduce((sum, { ran }) => sum + ran, 0),
      waited: all.reduce((sum, { waited }) => sum + waited, 0),
    };
  }

  async stop(): Promise<void> {
    await Promise.all(this.#programs.map((program) => program.stop()));
  }
}

async function lagOf(url: string): Promise<EmulatorStats["lagMillis"]> {
  const answer = await fetch(`${url}/emulator/stats`);
  return ((await answer.json()) as EmulatorStats).lagMillis;
}

/** An engine that serves the longest conversations too, as the simulated ones do. */
function engineFile(kind: string, folder: string): string {
  const engine = parse(readFileSync(join(ENGINE_FILES, `${kind}.yaml`), "utf8")) as object;
  const file = join(folder, `${kind}.yaml`);
  writeFileSync(file, stringify({ ...engine, modelTokensMax: MODEL_TOKENS_MAX }));
  return file;
}
