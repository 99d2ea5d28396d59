import type { Found, SearchResult } from "./search.ts";
import type { GainParts } from "./gain-parts.ts";
import type { Gain } from "./gain.ts";

/**
 * - better: the gain is there beyond its interval, on conversations that the search did not see
 * - uncertain: there may be a gain, and it may be chance
 * - nothing: no policy that was looked at gains anything worth having
 * - refused: the trace or the engine model cannot show it
 */
export const VERDICTS = ["better", "uncertain", "nothing", "refused"] as const;

export interface TuneVerdict {
  readonly kind: (typeof VERDICTS)[number];
  /** For people, a sentence each. */
  readonly reasons: readonly string[];
}

/** Chance that is accepted: of the gain on what was held out, and of the best one in the search. */
const CHANCE_MAX = 0.05;

export interface TunedPolicies {
  readonly gainMin: number;
  readonly search: Omit<SearchResult, "finalists">;
  readonly finalists: readonly Found[];
  readonly winner: Winner | undefined;
  readonly heldOut: HeldOut | undefined;
}

/** Whether the policy that was found is proposed, refused or uncertain, and why. */
export function verdictOf({ gainMin, search, winner, heldOut }: TunedPolicies): TuneVerdict {
  const least = percent(gainMin);
  if (!Number.isFinite(search.inForceLoss))
    return {
      kind: "refused",
      reasons: ["there was no time to simulate the profile in force: a larger budget is needed"],
    };
  if (winner === undefined && !search.isSettled)
    return {
      kind: "uncertain",
      reasons: ["no other policy was simulated whole within the time and the trials: a larger budget is needed"],
    };
  if (winner === undefined || heldOut === undefined)
    return { kind: "nothing", reasons: [`none of ${search.policies} policies was better than the one in force`] };
  if (winner.gain < gainMin)
    return {
      kind: "nothing",
      reasons: [
        `the best of ${search.policies} policies gains ${percent(winner.gain)} where it was searched, less than the ${least} ` +
          `that is worth a change${search.isSettled ? "" : "; its time or its trials were used up, and a larger budget may find a better one"}`,
      ],
    };
  const { gain, unanswered } = heldOut;
  const seen = `${percent(gain.value)} on what was held out (${percent(gain.low)} to ${percent(gain.high)})`;
  if (gain.high < gainMin)
    return { kind: "nothing", reasons: [`it gains ${seen}, less than the ${least} that is worth a change`] };
  const doubts = [
    // Their times are in no mean: who turns the slow ones away looks fast.
    ...(unanswered.after <= unanswered.before
      ? []
      : [`it leaves ${unanswered.after} requests without an answer, the profile in force ${unanswered.before}`]),
    ...(gain.low > 0 ? [] : [`it gains ${seen}: that may be chance`]),
    ...(gain.value >= gainMin ? [] : [`it gains ${seen}, less than the ${least} that is worth a change`]),
    ...(gain.chance <= CHANCE_MAX ? [] : [`chance alone shows as much with a probability of ${percent(gain.chance)}`]),
    ...(winner.chanceOfBest <= CHANCE_MAX
      ? []
      : [`the best of all that were searched is as good by chance with ${percent(winner.chanceOfBest)}`]),
  ];
  if (doubts.length > 0) return { kind: "uncertain", reasons: doubts };
  return { kind: "better", reasons: [`it gains ${seen}`] };
}

function percent(part: number): string {
  return `${(100 * part).toFixed(1)} %`;
}

export interface Winner extends Found {
  /** On the part that was searched. */
  readonly gain: number;
  /** Probability of so good a best one among those that came to the end, were none better: by the largest of all. */
  readonly chanceOfBest: number;
  /** The same among all policies that were looked at, by Bonferroni's rule. */
  readonly chanceOfAll: number;
}

export interface HeldOut {
  /** The wider of the two below. */
  readonly gain: Gain;
  readonly bySessions: Gain;
  readonly byTime: Gain;
  /** On the engine as it was fitted: loss in force and of the winner. */
  readonly before: number;
  readonly after: number;
  /** Gain on each drawn engine. */
  readonly replicas: readonly number[];
  /** Requests without an answer, in force and of the winner; of all engines together. */
  readonly unanswered: { readonly before: number; readonly after: number };
  readonly parts: GainParts;
}
