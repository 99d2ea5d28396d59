import type { Snapshot } from "../endpoint/snapshot.ts";
import { RecentMap } from "../base/recent-map.ts";
import type { RouteRequest } from "../request/request.ts";
import { filterPlugin } from "./filter.ts";

/** Classes of prompts followed at once. */
const CLASSES_MAX = 16_384;

interface PromptClass {
  /** Share of the class among the requests up to number `countedAt`; it fades with each request since. */
  share: number;
  countedAt: number;
  /** Decisions in a row that went to an endpoint which held the class. */
  streak: number;
}

/**
 * Keeps one popular prefix from swamping the few endpoints that hold it. For the class of prompts with the same leading
 * tokens, x is its share of recent requests and M the endpoints that hold its prefix.
 *
 *     alarm while  x / (1 - x) > |M| / (n - |M|)
 *     under alarm, after 2 |M| decisions in a row that went into M, the endpoints of M are dropped once
 */
export const hotspotDetector = filterPlugin({
  summary: "drops the holders of a prefix that draws more than its share of requests",
  reads: ["prefix-index"],
  source: "LMetric §5.2 (arXiv 2603.15202)",
  parameters: {
    prefixTokens: { type: "integer", default: 512, min: 1, meaning: "leading tokens that make a class" },
    windowRequests: { type: "integer", default: 256, min: 1, meaning: "requests over which a class's share is taken" },
  },
  create(name, { prefixTokens, windowRequests }) {
    const classes = new RecentMap<number, PromptClass>(CLASSES_MAX);
    const fade = 1 - 1 / windowRequests;
    let requests = 0;
    const classOf = (request: RouteRequest) => classes.get(classKey(request, prefixTokens));
    const currentShare = ({ share, countedAt }: PromptClass) => share * faded(fade, requests - countedAt);
    return {
      name,
      filter(request, candidates, keep) {
        const entry = classOf(request);
        if (entry === undefined || requests < windowRequests) return;
        const holders = candidates.filter(holds).length;
        const share = currentShare(entry);
        if (holders === 0 || holders === candidates.length) return;
        if (share / (1 - share) <= holders / (candidates.length - holders) || entry.streak < 2 * holders) return;
        candidates.forEach((candidate, i) => (keep[i] = holds(candidate) ? 0 : 1));
      },
      observe(_input, decision, request) {
        if (decision?.kind !== "routed" || request === undefined || request.blocks.length === 0) return;
        requests++;
        const key = classKey(request, prefixTokens);
        const entry = classes.get(key) ?? { share: 0, countedAt: requests, streak: 0 };
        entry.share = currentShare(entry) + (1 - fade);
        entry.countedAt = requests;
        entry.streak = decision.hitTokens > 0 ? entry.streak + 1 : 0;
        classes.set(key, entry);
      },
    };
  },
});

/** fade^times by squaring: exact products, the same last bit on every machine. */
function faded(fade: number, times: number): number {
  let result = 1;
  for (let base = fade, left = times; left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) result *= base;
    base *= base;
  }
  return result;
}

const holds = ({ hitBlocks }: Snapshot) => hitBlocks > 0;

/** 53 bits of the hash of the class's last block; -1 below one block. */
function classKey({ blocks }: RouteRequest, prefixTokens: number): number {
  const { hashes, length, blockTokens } = blocks;
  const block = Math.min(length, Math.max(1, Math.floor(prefixTokens / blockTokens))) - 1;
  return block < 0 ? -1 : (hashes[2 * block]! >>> 0) * 0x20_0000 + (hashes[2 * block + 1]! >>> 11);
}
