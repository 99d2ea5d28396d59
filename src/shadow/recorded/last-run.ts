import type { TraceItem } from "#trace/codec/record.ts";

/**
 * Chooses a trace's last run. One without a request is passed over where another had some: a gateway that cannot start
 * leaves it, named later than the run of the gateway that was there before and may go on recording.
 */
export class LastRun<T> {
  #now: T | undefined;
  #isUsed = false;
  #used: T | undefined;

  begin(run: T): void {
    this.#used = this.used;
    this.#now = run;
    this.#isUsed = false;
  }

  /** An item of the run that began last. */
  take(item: TraceItem): void {
    this.#isUsed ||= isOfRequest(item);
  }

  /** The run that began last. */
  get now(): T | undefined {
    return this.#now;
  }

  /** The last one with a request. */
  get used(): T | undefined {
    return this.#isUsed ? this.#now : this.#used;
  }

  get chosen(): T | undefined {
    return this.used ?? this.#now;
  }
}

/** Records that the recorder dropped may have been requests. */
function isOfRequest(item: TraceItem): boolean {
  if (item.kind === "gap") return item.damage === undefined;
  return item.kind === "record" && OF_REQUESTS.has(item.input.kind);
}

const OF_REQUESTS: ReadonlySet<string> = new Set(["request-arrived", "request-finished"]);
