import type { Overview, TrafficSlot } from "./overview.ts";
import type { PageState } from "./page-state.ts";

/** Decisions that the page keeps; open ones stay for as long. */
export const DECISIONS_SHOWN = 30;

/** The page after an answer of the gateway: what the answer has only in part is added to what was there. */
export function mergeOverview(state: PageState, overview: Overview, now: number): PageState {
  const restarted = overview.gateway.startedAt !== state.overview?.gateway.startedAt;
  const decisions = decisionsAfter(state, overview, restarted);
  const shown = new Set(decisions.map(({ sequence }) => sequence));
  return {
    ...state,
    overview,
    now,
    decisions,
    slots: mergedSlots(restarted ? [] : state.slots, overview),
    connection: { kind: "live", at: now },
    openDecisions: new Map([...state.openDecisions].filter(([sequence]) => shown.has(sequence))),
  };
}

/** Up to where the page knows the decisions and what came of them: asked for are those after it. */
export function lastSequence({ overview, decisions }: PageState): number {
  if (overview === undefined) return -1;
  const open = decisions.findLastIndex(({ isOver }) => !isOver);
  return decisions[open + 1]?.sequence ?? -1;
}

/** The last slot but the one that was still being filled. */
export function lastSlot({ slots }: PageState): number {
  return slots.at(-2)?.slot ?? -1;
}

/** New ones in front, unless those that are there are held; what came of these is added in any case. */
function decisionsAfter({ decisions, held }: PageState, overview: Overview, restarted: boolean) {
  const known = restarted ? [] : decisions;
  const last = known[0]?.sequence ?? -1;
  const given = new Map(overview.decisions.map((one) => [one.sequence, one]));
  const settled = known.map((one) => given.get(one.sequence) ?? one);
  if (held && !restarted) return settled;
  return [...overview.decisions.filter(({ sequence }) => sequence > last), ...settled].slice(0, DECISIONS_SHOWN);
}

function mergedSlots(known: readonly TrafficSlot[], { traffic }: Overview): readonly TrafficSlot[] {
  const first = traffic.slots[0]?.slot ?? Infinity;
  return [...known.filter(({ slot }) => slot < first), ...traffic.slots].slice(-traffic.slotsMax);
}
