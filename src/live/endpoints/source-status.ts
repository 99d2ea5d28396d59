import type { Micros } from "#core/base/units.ts";
import { nowMicros } from "../base/clock.ts";

/** How one source of endpoints stands, for metrics. */
export interface SourceRow {
  /** What is followed, for example "endpointslices infer/vllm". */
  readonly source: string;
  readonly up: boolean;
  /** Since it last sent anything, a bookmark included; -1 before the first time. */
  readonly newsAgeMicros: Micros;
  readonly failures: number;
  readonly recoveries: number;
  /** Whole lists that were read; many of them mean that versions are lost. */
  readonly lists: number;
  /** Watches that were opened. */
  readonly watches: number;
  /** Endpoints that it names now; undefined where another part of the gateway counts them. */
  readonly targets: number | undefined;
  /** Why it cannot be read now, or why its last change was refused; "" where all is well. */
  readonly detail: string;
}

/** Counts of one source, kept by whoever follows it. */
export class SourceStatus {
  readonly source: string;
  up = false;
  failures = 0;
  recoveries = 0;
  lists = 0;
  watches = 0;
  targets: number | undefined;
  detail = "";
  #newsAt: Micros | undefined;

  constructor(source: string) {
    this.source = source;
  }

  news(): void {
    this.#newsAt = nowMicros();
  }

  /** It was read. True where it could not be before, which is to be reported. */
  succeeded(): boolean {
    const recovers = this.detail !== "";
    if (recovers) this.recoveries++;
    this.up = true;
    this.detail = "";
    return recovers;
  }

  /** It cannot be read, or what it lists is refused. True where that is not known yet, and to be reported. */
  failed(why: string): boolean {
    const isNews = this.detail !== why;
    this.failures++;
    this.up = false;
    this.detail = why;
    return isNews;
  }

  get row(): SourceRow {
    const { source, up, failures, recoveries, lists, watches, targets, detail } = this;
    const newsAgeMicros = this.#newsAt === undefined ? -1 : nowMicros() - this.#newsAt;
    return { source, up, newsAgeMicros, failures, recoveries, lists, watches, targets, detail };
  }
}
