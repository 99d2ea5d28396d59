import type { EndpointId } from "../endpoint/endpoint.ts";
import { mix32, nameHash } from "../base/random.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";
import { RecentMap } from "../base/recent-map.ts";
import type { RouteRequest } from "../request/request.ts";
import { pickerPlugin } from "./picker.ts";

/** Endpoints whose decisions are counted, for least-served. */
const ENDPOINTS_MAX = 4096;

/**
 * Picks the highest total. Totals within `epsilon` of the highest tie; `tieBreak` then chooses:
 * lowest-id, random (one draw of the decision's stream), stable-hash of endpoint and prompt prefix (so
 * that a prefix stays where it is), rotate (a counter that advances when it decided between candidates), coldest-work (B3
 * unified: fewest new tokens, then fewest requests in flight, then rotate), or least-served (SMG: fewest decisions so
 * far, then the lowest id).
 */
export const maxScore = pickerPlugin({
  summary: "the highest total",
  reads: ["prefix-index", "ledger"],
  source:
    "BLIS, Evolutionary Policy Optimization (tie-breaking); B3 Routing Policies (rotation); llm-d max-score-picker",
  parameters: {
    tieBreak: {
      type: "choice",
      default: "lowest-id",
      values: ["lowest-id", "random", "stable-hash", "rotate", "coldest-work", "least-served"],
      meaning: "how the choice among equal totals is made",
    },
    epsilon: { type: "number", default: 0, min: 0, max: 1, meaning: "totals this close to the highest count as equal" },
  },
  readsWith: ({ tieBreak }) => (tieBreak === "coldest-work" ? ["prefix-index", "ledger"] : ["none"]),
  create(name, { tieBreak, epsilon }) {
    let turn = 0;
    /**
     * Whether the last pick took a turn of the rotation; it counts once the decision took effect, whichever router made
     * it.
     */
    let tookTurn = false;
    const served = new RecentMap<EndpointId, number>(ENDPOINTS_MAX);
    const rotate = (tied: readonly number[]) => {
      tookTurn = tied.length > 1;
      return tied[turn % tied.length]!;
    };
    return {
      name,
      followsTotals: true,
      epsilon,
      pick(request, candidates, totals, random) {
        tookTurn = false;
        const only = onlyHighest(totals, candidates.length, epsilon);
        if (only >= 0) return only;
        const tied = tiedIndexes(totals, candidates.length, epsilon);
        switch (tieBreak) {
          case "lowest-id":
            return tied[0]!;
          case "random":
            return tied[random.below(tied.length)]!;
          case "rotate":
            return rotate(tied);
          case "coldest-work":
            return rotate(leastWork(tied, request, candidates));
          case "stable-hash":
            return highestHash(tied, request, candidates);
          case "least-served":
            return leastServed(tied, candidates, served);
        }
      },
      note: () => (tookTurn ? TURN : undefined),
      observe(_input, decision) {
        if (decision.kind !== "routed") return;
        if (decision.noted?.turn === true) turn++;
        if (tieBreak === "least-served") served.set(decision.endpoint, (served.get(decision.endpoint) ?? 0) + 1);
      },
    };
  },
});

const TURN = { turn: true } as const;

/** The candidate with the highest total where no other's is within epsilon of it, as mostly; else -1. */
function onlyHighest(totals: Float64Array, count: number, epsilon: number): number {
  let highest = 0;
  for (let i = 1; i < count; i++) if (totals[i]! > totals[highest]!) highest = i;
  for (let i = 0; i < count; i++) if (i !== highest && totals[i]! >= totals[highest]! - epsilon) return -1;
  return highest;
}

/** Candidates whose total is within epsilon of the highest, in order. */
function tiedIndexes(totals: Float64Array, count: number, epsilon: number): number[] {
  let best = -Infinity;
  for (let i = 0; i < count; i++) best = Math.max(best, totals[i]!);
  const tied: number[] = [];
  for (let i = 0; i < count; i++) if (totals[i]! >= best - epsilon) tied.push(i);
  return tied;
}

/** Of the tied ones, those with the fewest new tokens and then the fewest requests. */
function leastWork(tied: readonly number[], request: RouteRequest, candidates: readonly Snapshot[]): number[] {
  const fresh = (i: number) => Math.max(0, request.promptTokens - candidates[i]!.hitTokens);
  const least = Math.min(...tied.map(fresh));
  const warm = tied.filter((i) => fresh(i) === least);
  const fewest = Math.min(...warm.map((i) => candidates[i]!.requestsInFlight));
  return warm.filter((i) => candidates[i]!.requestsInFlight === fewest);
}

function leastServed(
  tied: readonly number[],
  candidates: readonly Snapshot[],
  served: RecentMap<EndpointId, number>,
): number {
  const count = (i: number) => served.get(candidates[i]!.id) ?? 0;
  return tied.reduce((best, i) => (count(i) < count(best) ? i : best));
}

/** Rendezvous hashing: each endpoint keeps its rank for a prefix whoever else comes or goes. */
function highestHash(tied: readonly number[], request: RouteRequest, candidates: readonly Snapshot[]): number {
  const prefix = prefixKey(request);
  let chosen = tied[0]!;
  let highest = -1;
  for (const index of tied) {
    const hash = mix32(nameHash(candidates[index]!.id) ^ prefix);
    if (hash > highest) {
      highest = hash;
      chosen = index;
    }
  }
  return chosen;
}

/** Names the prompt by its first blocks, at most `PREFIX_BLOCKS`; a prompt below one block by its length. */
function prefixKey(request: RouteRequest): number {
  const { hashes, length } = request.blocks;
  if (length === 0) return mix32(request.promptTokens);
  const block = Math.min(length, PREFIX_BLOCKS) - 1;
  return mix32(hashes[2 * block]! ^ mix32(hashes[2 * block + 1]!));
}

const PREFIX_BLOCKS = 4;
