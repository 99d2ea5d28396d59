import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { FaultEvent } from "../log/fault-log.ts";

/** Something that makes no event: it is wrong because it goes on. */
export interface Silence extends Pick<FaultEvent, "kind" | "endpoint" | "detail" | "done"> {
  /** The same as long as it is the same silence. */
  readonly key: string;
  /** How long it has to go on before it is a line. */
  readonly holdMicros: Micros;
}

export interface SilenceWatchOptions {
  /** All that goes on at a time. */
  readonly silences: (at: Micros) => readonly Silence[];
  readonly report: (event: FaultEvent) => void;
  readonly now: () => Micros;
}

const WATCH_MILLIS = 10_000;

/** A line for each silence that has gone on for long, once; another one where it ended meanwhile and begins again. */
export class SilenceWatch {
  readonly #options: SilenceWatchOptions;
  /** Since when each goes on; -1 where it is a line already. No more than there are silences. */
  readonly #since = new Map<string, Micros>();
  readonly #timer: NodeJS.Timeout;

  constructor(options: SilenceWatchOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.look(), WATCH_MILLIS).unref();
  }

  look(): void {
    const at = this.#options.now();
    const silences = this.#options.silences(at);
    const keys = new Set(silences.map(keyOf));
    for (const key of this.#since.keys()) if (!keys.has(key)) this.#since.delete(key);
    for (const silence of silences) {
      const key = keyOf(silence);
      const since = this.#since.get(key) ?? at;
      if (since === REPORTED) continue;
      const isLong = at - since >= silence.holdMicros;
      this.#since.set(key, isLong ? REPORTED : since);
      if (isLong) this.#report(silence, at - since);
    }
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #report({ kind, endpoint, detail, done }: Silence, forMicros: Micros): void {
    const figures = { forSeconds: Math.round(forMicros / MICROS_PER_SECOND) };
    this.#options.report({ kind, detail, done, figures, ...(endpoint !== undefined && { endpoint }) });
  }
}

const REPORTED = -1;

function keyOf({ kind, key }: Silence): string {
  return `${kind} ${key}`;
}
