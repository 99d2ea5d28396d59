import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";

/** What lies between an engine that computes prompts and one that answers. */
export interface TransferOptions {
  /** Before the first byte of every transfer. */
  readonly latencyMicros: Micros;
  /** Of one transfer; with `contention`, of all that are under way when it begins. */
  readonly bytesPerSecond: number;
  readonly contention: boolean;
  /** How long blocks are held for nobody (kv_lease_duration of vLLM's NIXL connector). */
  readonly leaseMicros: Micros;
  /** What is done about blocks that do not come (kv_load_failure_policy): the request fails there, or is computed there. */
  readonly failurePolicy: "fail" | "recompute";
}

export const TRANSFER_DEFAULTS: TransferOptions = {
  latencyMicros: 50,
  bytesPerSecond: 25e9,
  contention: false,
  leaseMicros: 30 * MICROS_PER_SECOND,
  failurePolicy: "fail",
};

/** latency + bytes / bandwidth, in whole microseconds, at least 1. `underWay` counts transfers, this one included. */
export function transferMicros(
  { latencyMicros, bytesPerSecond, contention }: TransferOptions,
  bytes: number,
  underWay: number,
): Micros {
  const share = contention ? bytesPerSecond / underWay : bytesPerSecond;
  return Math.max(1, Math.ceil(latencyMicros + (bytes * MICROS_PER_SECOND) / share));
}
