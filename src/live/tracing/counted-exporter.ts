import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import type { ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace";
import type { SpanCounts } from "./request-spans.ts";

/** What is reported of a collector: the first failure of a row, and that it takes spans again. */
export interface CollectorWatch {
  failed(detail: string): void;
  /** After so many spans that were lost. */
  recovered(spansLost: number): void;
}

/** Batches on their way to a collector: counts what became of their spans. A batch that fails is lost. */
export class CountedExporter implements SpanExporter {
  readonly counts: { -readonly [K in keyof SpanCounts]: number } = { sent: 0, failed: 0 };
  readonly #inner: SpanExporter;
  readonly #watch: CollectorWatch;
  /** Of the row of failures under way. */
  #lost = 0;

  constructor(inner: SpanExporter, watch: CollectorWatch) {
    this.#inner = inner;
    this.#watch = watch;
  }

  export(spans: ReadableSpan[], ended: (result: ExportResult) => void): void {
    this.#inner.export(spans, (result) => {
      if (result.code === ExportResultCode.SUCCESS) {
        this.counts.sent += spans.length;
        if (this.#lost > 0) this.#watch.recovered(this.#lost);
        this.#lost = 0;
      } else {
        this.counts.failed += spans.length;
        if (this.#lost === 0) this.#watch.failed(result.error?.message ?? "no reason was given");
        this.#lost += spans.length;
      }
      ended(result);
    });
  }

  shutdown(): Promise<void> {
    return this.#inner.shutdown();
  }

  forceFlush(): Promise<void> {
    return this.#inner.forceFlush?.() ?? Promise.resolve();
  }
}
