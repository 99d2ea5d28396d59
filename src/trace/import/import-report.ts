/** The formats that can be read, by the name used in options and reports. */
export const WORKLOAD_FORMATS = [
  "mooncake",
  "bailian",
  "azure",
  "weka",
  "lmcache",
  "token-ids",
  "vllm-run",
  "vllm-bench",
  "dynamo",
  "otel-spans",
  "nginx",
  "envoy",
  "llm-d",
  "sharegpt",
  "blis",
  "blis-result",
  "blis-spec",
  "workload",
  "synthetic",
] as const;
export type WorkloadFormat = (typeof WORKLOAD_FORMATS)[number];

/** A workload that cannot be read, or that `strict` refuses. The message names the file and what was expected. */
export class ImportError extends Error {
  override readonly name = "ImportError";
}

/** Places of refused records that are kept by name; all are counted. */
const PLACES_MAX = 10;

/**
 * What became of every record of a workload: accepted, refused for a reason, or accepted with a change. Reasons are
 * constant texts without the record's content, so their number is bounded.
 */
export class ImportReport {
  readonly path: string;
  readonly format: WorkloadFormat;
  /** Records seen: lines, or requests inside a session file. */
  records = 0;
  /** Records that became requests. */
  accepted = 0;
  readonly refused = new Map<string, number>();
  readonly adjusted = new Map<string, number>();
  /** The first refusals: "file:line: reason". */
  readonly places: string[] = [];
  readonly #strict: boolean;

  constructor(path: string, format: WorkloadFormat, strict: boolean) {
    this.path = path;
    this.format = format;
    this.#strict = strict;
  }

  /** Index of the next request, and counts it. */
  accept(): number {
    return this.accepted++;
  }

  /** Counts a record that is left out; throws ImportError when strict. */
  refuse(place: string, reason: string): void {
    const message = `${place}: ${reason}`;
    if (this.#strict) throw new ImportError(message);
    this.refused.set(reason, (this.refused.get(reason) ?? 0) + 1);
    if (this.places.length < PLACES_MAX) this.places.push(message);
  }

  /** Counts a record that was taken otherwise than it was written. */
  adjust(what: string): void {
    this.adjusted.set(what, (this.adjusted.get(what) ?? 0) + 1);
  }

  /** What was taken otherwise, a line each. */
  adjustedLines(): string[] {
    return [...this.adjusted].map(([what, count]) => `${count} times: ${what}`);
  }

  get refusedTotal(): number {
    let total = 0;
    for (const count of this.refused.values()) total += count;
    return total;
  }
}
