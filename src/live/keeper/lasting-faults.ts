import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { FaultEvent } from "../log/fault-log.ts";

/** Something that makes no event: it is wrong because it goes on. */
export interface LastingFault extends Pick<FaultEvent, "kind" | "endpoint" | "detail" | "done"> {
  /** The same as long as it is the same fault. */
  readonly key: string;
  /** How long it has to go on before it is a line. */
  readonly holdMicros: Micros;
}

export interface LastingFaultsOptions {
  /** All that goes on at a time. */
  readonly faults: (at: Micros) => readonly LastingFault[];
  readonly report: (event: FaultEvent) => void;
  readonly now: () => Micros;
}

const WATCH_MILLIS = 10_000;

/** A line for each fault that has gone on for long, once; another one where it ended meanwhile and begins again. */
export class LastingFaults {
  readonly #options: LastingFaultsOptions;
  /** Since when each goes on; -1 where it is a line already. No more than there are faults. */
  readonly #since = new Map<string, Micros>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: LastingFaultsOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.look(), WATCH_MILLIS).unref();
  }

  look(): void {
    const at = this.#options.now();
    const faults = this.#options.faults(at);
    const keys = new Set(faults.map(keyOf));
    for (const key of this.#since.keys()) if (!keys.has(key)) this.#since.delete(key);
    for (const fault of faults) {
      const key = keyOf(fault);
      const since = this.#since.get(key) ?? at;
      if (since === REPORTED) continue;
      const isLong = at - since >= fault.holdMicros;
      this.#since.set(key, isLong ? REPORTED : since);
      if (isLong) this.#report(fault, at - since);
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #report({ kind, endpoint, detail, done }: LastingFault, forMicros: Micros): void {
    const figures = { forSeconds: Math.round(forMicros / MICROS_PER_SECOND) };
    this.#options.report({ kind, detail, done, figures, ...(endpoint !== undefined && { endpoint }) });
  }
}

const REPORTED = -1;

function keyOf({ kind, key }: LastingFault): string {
  return `${kind} ${key}`;
}
