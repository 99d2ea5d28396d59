import type { Micros } from "#core/base/units.ts";

/** What became of prompts that were computed at one endpoint and answered at another. */
export interface HandoffFigures {
  /** Requests that were sent so, and decisions that had one endpoint do both, by their reason. */
  readonly shared: number;
  readonly colocated: Readonly<Record<string, number>>;
  /** Transfers that began, and those that brought nothing. */
  readonly transfers: number;
  readonly failed: number;
  /** Holds whose lease ran out. */
  readonly expired: number;
  readonly bytes: number;
  /** Means over transfers: how long they took, and how long their blocks were held before they began. */
  readonly transferMicrosMean: Micros;
  readonly heldMicrosMean: Micros;
}

/** Counts as they are made. */
export class HandoffCounts {
  shared = 0;
  readonly colocated = new Map<string, number>();
  transfers = 0;
  ended = 0;
  failed = 0;
  expired = 0;
  bytes = 0;
  transferMicros = 0;
  heldMicros = 0;

  figures(): HandoffFigures {
    const { shared, transfers, failed, expired, bytes } = this;
    const mean = (sum: number) => (transfers === 0 ? 0 : sum / transfers);
    return {
      shared,
      colocated: Object.fromEntries([...this.colocated].sort(([a], [b]) => (a < b ? -1 : 1))),
      transfers,
      failed,
      expired,
      bytes,
      transferMicrosMean: mean(this.transferMicros),
      heldMicrosMean: mean(this.heldMicros),
    };
  }
}
