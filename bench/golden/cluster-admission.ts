import { ADMIT, type AdmissionPolicy } from "#core/admission/admission.ts";
import { TokenBucket } from "#core/admission/token-bucket.ts";
import type { SeenLoad } from "./seen-load.ts";
import { SLO_URGENCY_MAX } from "./slo-class.ts";

/** The fields of a case that say who is admitted. */
export interface AdmissionForm {
  readonly admission_policy: string;
  readonly token_bucket_capacity?: number;
  readonly token_bucket_refill_rate?: number;
  readonly tier_shed_threshold?: number;
  readonly tier_shed_min_priority?: number;
  readonly gaie_qd_threshold?: number;
  readonly gaie_kv_threshold?: number;
}

/** Builds the policy over what the router has seen of the engines when it is asked. */
export type GoldenAdmission = (seen: SeenLoad) => AdmissionPolicy;

/**
 * BLIS's admission policies; undefined for always-admit.
 *
 * - token-bucket: a prompt takes its tokens, 10,000 at most, refilled with 1,000 a second by default;
 * - tier-shed: while the greatest load of an endpoint is above the threshold, classes below the least priority go;
 * - gaie-legacy: classes of negative priority go while the mean of max(queue / 5, KV / 0.8) is at least 1.
 */
export function admissionOf(form: AdmissionForm): GoldenAdmission | undefined {
  switch (form.admission_policy) {
    case "":
    case "always-admit":
      return undefined;
    case "reject-all":
      return () => rejecting("reject-all", () => true);
    case "token-bucket":
      return () =>
        new TokenBucket({
          bucketTokens: form.token_bucket_capacity ?? 10_000,
          refillPerSecond: form.token_bucket_refill_rate ?? 1_000,
          cost: "prompt-tokens",
          per: "all",
          onEmpty: "reject",
        });
    case "tier-shed":
      return (seen) => tierShed(seen, form.tier_shed_threshold ?? 0, form.tier_shed_min_priority ?? 0);
    case "gaie-legacy":
      return (seen) => gaieLegacy(seen, orDefault(form.gaie_qd_threshold, 5), orDefault(form.gaie_kv_threshold, 0.8));
    default:
      throw new Error(
        `config.admission_policy: expected always-admit, reject-all, token-bucket, tier-shed or gaie-legacy, got ${form.admission_policy}`,
      );
  }
}

/** Zero stands for the default. */
function orDefault(value: number | undefined, fallback: number): number {
  return value === undefined || value === 0 ? fallback : value;
}

function tierShed(seen: SeenLoad, loadMax: number, priorityMin: number): AdmissionPolicy {
  return rejecting("tier-shed", (priority) => {
    const greatest = Math.max(...seen.queue.map((queue, i) => queue + seen.batch[i]! + seen.inFlight[i]!));
    return greatest > loadMax && priority < priorityMin;
  });
}

function gaieLegacy(seen: SeenLoad, queueMax: number, kvMax: number): AdmissionPolicy {
  return rejecting("gaie-legacy", (priority) => {
    if (priority >= 0) return false;
    const parts = seen.queue.map((queue, i) => Math.max(queue / queueMax, seen.kvUtilization[i]! / kvMax));
    return parts.reduce((sum, part) => sum + part, 0) / parts.length >= 1;
  });
}

/** Refuses by the class's priority, as BLIS counts it: greater is more urgent. */
function rejecting(reason: string, refuses: (priority: number) => boolean): AdmissionPolicy {
  return {
    name: reason,
    holds: false,
    continues: false,
    check: (request) => (refuses(SLO_URGENCY_MAX - request.priority) ? { action: "reject", reason } : ADMIT),
    admitted: () => {},
    ended: () => {},
    uses: () => [],
  };
}
