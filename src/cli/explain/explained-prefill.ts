import type { PrefillStage } from "#core/input/decision.ts";
import { type ColocateReason, colocateReason } from "#core/prefill/colocate.ts";
import { ELIGIBILITY } from "#core/endpoint/eligibility.ts";
import type { Snapshot } from "#core/endpoint/snapshot.ts";
import type { PrefillStages } from "#core/profile/profile-parts.ts";
import { prefillStage } from "#core/stage-choice.ts";
import type { Random } from "#core/base/random.ts";
import type { RouteRequest } from "#core/request/request.ts";

/** The first stage of a decision, whose endpoint answers. */
export interface DecodeStage {
  readonly request: RouteRequest;
  readonly snapshots: readonly Snapshot[];
  readonly ids: readonly string[];
  readonly ineligible: Uint8Array;
  readonly chosen: Snapshot;
  readonly random: Random;
}

/** Why each of them may not serve, as an index into ELIGIBILITY. */
export function marksOf(
  snapshots: readonly Snapshot[],
  why: (snapshot: Snapshot) => (typeof ELIGIBILITY)[number],
): Uint8Array {
  return Uint8Array.from(snapshots, (snapshot) => ELIGIBILITY.indexOf(why(snapshot)));
}

/** Who computes the prompt, or why the endpoint that answers does, as the router decides it for a first attempt. */
export function explainedPrefill(
  stages: PrefillStages,
  { request, snapshots, ids, ineligible, chosen, random }: DecodeStage,
): PrefillStage | ColocateReason {
  const { spec, roles, prefill } = stages;
  const why = colocateReason(spec, request, chosen.hitTokens, { continued: false, transferFailed: false });
  if (why !== undefined) return why;
  const role = ELIGIBILITY.indexOf("role");
  const marks = marksOf(snapshots, (snapshot) => {
    if (snapshot === chosen) return "answers";
    // Who is not for answers may be for prompts.
    const before = ineligible[ids.indexOf(snapshot.id)]!;
    if (before !== 0 && before !== role) return ELIGIBILITY[before]!;
    if (!roles.may("prefill", snapshot.endpoint)) return "role";
    return roles.mayPair(chosen.endpoint, snapshot.endpoint) ? "" : "pair";
  });
  const { index, reason, breakdown } = prefill.choose(request, snapshots, ids, marks, random);
  const state = snapshots[index];
  if (state === undefined) return "no-prefill-endpoint";
  return prefillStage(stages, state, { reason, breakdown });
}
