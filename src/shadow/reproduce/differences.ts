import { runningRequests, waitingRequests } from "#core/endpoint/gauge.ts";
import type { Snapshot } from "#core/endpoint/snapshot.ts";
import { chanceOf, likeliest } from "./chances.ts";
import { type ComparedDecision, walk } from "./forced-walk.ts";
import type { DecidedRun } from "./decided-run.ts";
import type { TriedPolicy } from "./neighbours.ts";

/** What an endpoint can be preferred for; less is better. */
const SIGNALS: Readonly<Record<string, (state: Snapshot) => number>> = {
  "blocks of the prompt": ({ hitBlocks }) => -hitBlocks,
  "requests in flight": ({ requestsInFlight }) => requestsInFlight,
  "requests there, as engines report": (state) => state.effectiveLoad,
  "waiting requests": (state) => waitingRequests(state),
  "running requests": (state) => runningRequests(state),
  "KV blocks in use": ({ kvUtilization }) => kvUtilization,
  "prompt tokens queued": ({ prefillTokensQueued }) => prefillTokensQueued,
};

/** How the endpoints that were chosen compare with those that a policy names, by one signal. */
export interface SignalDifference {
  readonly signal: string;
  /** Decisions of which theirs is better by it, both are alike, or the policy's is. */
  readonly theirs: number;
  readonly alike: number;
  readonly ours: number;
  /** Decisions of which theirs is the best of all that could serve. */
  readonly best: number;
}

export interface Differences {
  /** Held-out decisions that the policy would not have made. */
  readonly decisions: number;
  readonly signals: readonly SignalDifference[];
  /** The signal that speaks most for their choices, and for more than half of them; undefined where none does. */
  readonly speaks: string | undefined;
  /** First requests of them. */
  readonly requests: readonly string[];
}

const REQUESTS_MAX = 10;

/** Where a policy would have chosen otherwise, and by which signals. */
export function differencesOf(run: DecidedRun, policy: TriedPolicy): Differences {
  const rows = new Map(Object.keys(SIGNALS).map((signal) => [signal, { theirs: 0, alike: 0, ours: 0, best: 0 }]));
  const requests: string[] = [];
  let decisions = 0;
  walk(run, [policy], policy.reading, ({ view, chosen, chances, isHeldOut }: ComparedDecision) => {
    if (!isHeldOut || chanceOf(chances, chosen).chance > 0) return;
    decisions++;
    if (requests.length < REQUESTS_MAX) requests.push(view.request.id);
    const named = likeliest(chances);
    for (const [signal, of] of Object.entries(SIGNALS)) {
      const row = rows.get(signal)!;
      const theirs = of(view.states[chosen]!);
      const least = Math.min(...view.states.flatMap((state, i) => (view.ineligible[i] === 0 ? [of(state)] : [])));
      if (theirs === least) row.best++;
      const own = named < 0 ? theirs : of(view.states[named]!);
      row[theirs < own ? "theirs" : theirs > own ? "ours" : "alike"]++;
    }
  });
  const signals = [...rows].map(([signal, row]) => ({ signal, ...row }));
  const lead = ({ theirs, ours }: SignalDifference): number => theirs - ours;
  const [most] = signals.toSorted((a, b) => lead(b) - lead(a));
  const speaks = most !== undefined && lead(most) > decisions / 2 ? most.signal : undefined;
  return { decisions, signals, speaks, requests };
}
