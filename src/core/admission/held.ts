import type { Micros } from "../base/units.ts";
import type { LimitReason } from "./admission.ts";
import type { WaitReason } from "./waiting-request.ts";

/**
 * Why admission refuses a request: a limit's word; shed: its pool is saturated and its class may be refused; queue-full,
 * queue-timeout: as they say; queue-evicted: it made room for another one; model-cap: too many in flight for its model.
 */
export type RefusalReason = LimitReason | "model-cap" | "shed" | "queue-full" | "queue-timeout" | "queue-evicted";

export const REFUSAL_REASONS = [
  "bucket-empty",
  "rate-limit",
  "tenant-quota",
  "usage-quota",
  "hard-cap",
  "model-cap",
  "shed",
  "queue-full",
  "queue-timeout",
  "queue-evicted",
] as const satisfies readonly RefusalReason[];

export const WAIT_REASONS = [
  "saturated",
  "no-endpoint",
  "bucket-empty",
  "rate-limit",
  "tenant-quota",
  "usage-quota",
  "hard-cap",
] as const satisfies readonly WaitReason[];

/** A request that does not go on now. */
export type Held =
  | {
      readonly kind: "rejected";
      readonly reason: RefusalReason;
      /** Name of the limit that refused it. */
      readonly limit?: string;
      /** After which asking again may help, where that is known. */
      readonly retryMicros?: Micros;
    }
  | { readonly kind: "queued"; readonly reason: WaitReason; readonly limit?: string };
