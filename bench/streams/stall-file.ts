import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { FORGOTTEN_MILLIS } from "./forgotten-millis.ts";
import type { StallReport } from "./loop-stalls.ts";

/** What one process reports about its event loop: it is started with `nodeFlags` and `environment`. */
export class StallFile {
  static #count = 0;
  readonly #path: string;
  #pid = 0;
  #report: StallReport | undefined;
  readonly nodeFlags: readonly string[] = ["--import", join(import.meta.dirname, "loop-stalls.ts")];
  readonly environment: Readonly<Record<string, string>>;

  /** Not `profiled`, it costs its process next to nothing, and shows not what the loop was late for. */
  constructor(folder: string, profiled = true) {
    this.#path = join(folder, `stalls-${StallFile.#count++}.json`);
    this.environment = { STALLS_PATH: this.#path, STALLS_PROFILED: profiled ? "1" : "0" };
  }

  /** Of what was read last: CPU of the main thread in its longest turn. */
  get turnCpuMillis(): number {
    return this.#report!.turnCpuMillis;
  }

  of(pid: number): void {
    this.#pid = pid;
  }

  /** Takes what was since the last time. */
  async read(): Promise<void> {
    rmSync(this.#path, { force: true });
    process.kill(this.#pid, "SIGUSR2");
    for (;;) {
      await sleep(20);
      if (!existsSync(this.#path)) continue;
      const text = readFileSync(this.#path, "utf8");
      if (!text.endsWith("}")) continue;
      this.#report = JSON.parse(text) as StallReport;
      return;
    }
  }

  /** Forgets what was, and the pause of 30 to 200 ms that a profiler makes when it begins anew, with what it delayed. */
  async restart(): Promise<void> {
    await this.read();
    await sleep(FORGOTTEN_MILLIS + 100);
  }

  print(whose: string): void {
    const { millis, stalls, collections, work } = this.#report!;
    const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
    const all = sum(stalls.map((one) => one.millis));
    const waited = sum(stalls.map((one) => one.waitedMillis));
    const collected = sum(stalls.map((one) => one.collectedMillis));
    const longest = Math.max(0, ...stalls.map((one) => one.millis));
    const kinds = [...new Set(collections.map((one) => one.kind))].map((kind) => {
      const of = collections.filter((one) => one.kind === kind).map((one) => one.millis);
      return `${KINDS[kind] ?? `kind ${kind}`} ${of.length} x, longest ${Math.max(...of).toFixed(1)} ms`;
    });
    console.log(
      `          ${whose}: late ${((100 * all) / millis).toFixed(1)} % of the time, ${stalls.length} x, longest ` +
        `${longest.toFixed(0)} ms; ${percent(waited, all)} waited for a core, ${percent(collected, all)} collected ` +
        `garbage, ${percent(Math.max(0, all - waited - collected), all)} worked; collections: ${kinds.join(", ") || "none"}`,
    );
    const byCpu = stalls.toSorted((a, b) => b.cpuMillis - a.cpuMillis).slice(0, LONGEST);
    const longestCpu = byCpu.map((one) => `${one.cpuMillis.toFixed(1)} (${one.collectedMillis.toFixed(1)})`);
    console.log(`            most CPU at once, ms (of the time, collections): ${longestCpu.join(", ") || "none"}`);
    const worked = stalls.map((one) => one.millis - one.waitedMillis - one.collectedMillis).sort((a, b) => b - a);
    const longestWork = worked.slice(0, LONGEST).map((one) => one.toFixed(1));
    const places = work.map(([place, took]) => `${place} ${took.toFixed(1)}`);
    console.log(
      `            most work at once, ms: ${longestWork.join(", ") || "none"}; ms in those above 5: ${places.join(", ") || "none"}`,
    );
  }
}

const LONGEST = 5;
const KINDS: Readonly<Record<number, string>> = { 1: "young", 4: "whole heap", 8: "marking", 16: "weak callbacks" };

function percent(part: number, whole: number): string {
  return whole === 0 ? "0 %" : `${((100 * part) / whole).toFixed(0)} %`;
}
