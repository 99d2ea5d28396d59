import type { ColocateReason, RoutedPrefill } from "#core/input/decision.ts";
import { ELIGIBILITY } from "#core/endpoint/eligibility.ts";
import type { Snapshot } from "#core/endpoint/snapshot.ts";
import type { Profile } from "#core/profile/profile.ts";
import type { Random } from "#core/base/random.ts";
import type { RouteRequest } from "#core/request/request.ts";

/** The first choice of a decision: the endpoint that answers. */
export interface DecodeChoice {
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
  division: NonNullable<Profile["division"]>,
  { request, snapshots, ids, ineligible, chosen, random }: DecodeChoice,
): RoutedPrefill | ColocateReason {
  const { roles } = division;
  const role = ELIGIBILITY.indexOf("role");
  const marks = () =>
    marksOf(snapshots, (snapshot) => {
      if (snapshot === chosen) return "answers";
      // Who is not for answers may be for prompts.
      const before = ineligible[ids.indexOf(snapshot.id)]!;
      if (before !== 0 && before !== role) return ELIGIBILITY[before]!;
      if (!roles.may("prefill", snapshot.endpoint)) return "role";
      return roles.mayPair(chosen.endpoint, snapshot.endpoint) ? "" : "pair";
    });
  const past = { continued: false, transferFailed: false };
  const choice = division.choose({ request, answers: chosen, past, random }, { states: snapshots, ids, marks });
  return typeof choice === "string" ? choice : choice.prefill;
}
