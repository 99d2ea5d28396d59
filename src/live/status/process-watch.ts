import { performance } from "node:perf_hooks";
import type { ProcessFigures } from "#page/status/overview.ts";
import { MICROS_PER_MILLI, MILLIS_PER_SECOND } from "#core/base/units.ts";
import { LoopDelay } from "../base/loop-delay.ts";

/** Who looks more often gets the figures of this long. */
const SPAN_MILLIS_MIN = 1_000;
/** So long after the last look it goes on watching, which wakes the event loop. */
const LOOKED_AT_MILLIS = 60_000;

/** What this process takes of processor, event loop and memory, since somebody looked last. It watches while somebody does. */
export class ProcessWatch {
  readonly #delay = new LoopDelay();
  #since = 0;
  #cpu: NodeJS.CpuUsage | undefined;
  #last: ProcessFigures = { cpu: 0, loopHeldMillis: 0, memoryBytes: 0 };
  #end: NodeJS.Timeout | undefined;

  figures(): ProcessFigures {
    clearTimeout(this.#end);
    this.#end = setTimeout(() => this.stop(), LOOKED_AT_MILLIS).unref();
    const now = performance.now();
    const before = this.#cpu;
    if (before !== undefined && now - this.#since < SPAN_MILLIS_MIN) return this.#last;
    this.#cpu = process.cpuUsage();
    if (before === undefined) this.#delay.enable();
    this.#last = {
      cpu: before === undefined ? 0 : usedMillis(before, this.#cpu) / (now - this.#since),
      loopHeldMillis: MILLIS_PER_SECOND * this.#delay.max,
      memoryBytes: process.memoryUsage.rss(),
    };
    this.#delay.reset();
    this.#since = now;
    return this.#last;
  }

  /** The next look begins anew. */
  stop(): void {
    clearTimeout(this.#end);
    this.#end = undefined;
    this.#cpu = undefined;
    this.#delay.disable();
  }
}

function usedMillis(before: NodeJS.CpuUsage, now: NodeJS.CpuUsage): number {
  return (now.user - before.user + now.system - before.system) / MICROS_PER_MILLI;
}
