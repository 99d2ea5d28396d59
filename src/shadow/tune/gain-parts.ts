import type { CandidateOutcome } from "../candidate/candidate.ts";
import { type Cause, causesOf } from "../candidate/cause.ts";
import { figuresOf } from "../figure/figures.ts";
import { type PerMetric, perMetric } from "../figure/metric.ts";
import type { WorkloadRequests } from "../recorded/packed-workload.ts";
import type { Clusters } from "../job/clusters.ts";
import type { Losses } from "../job/objective.ts";

/** Requests that are alike, and what they gain. Losses in microseconds, or missed targets in [0, 1]. */
export interface GainPart {
  readonly label: string;
  readonly requests: number;
  readonly before: number;
  readonly after: number;
  /** Part of the whole gain that is theirs; all parts of a kind add up to 1. Below 0 for a loss. */
  readonly share: number;
}

export interface EndpointPart {
  readonly endpoint: string;
  readonly requestsBefore: number;
  readonly requestsAfter: number;
  readonly before: number;
  readonly after: number;
}

export type MeanAndTail = PerMetric<{ readonly mean: number; readonly p99: number } | undefined>;

/** Which requests gain, which endpoints, and why. */
export interface GainParts {
  readonly byPrompt: readonly GainPart[];
  readonly byTurn: readonly GainPart[];
  readonly byEndpoint: readonly EndpointPart[];
  readonly causes: readonly Cause[];
  /** Of the requests that were held out. Microseconds. */
  readonly figures: { readonly before: MeanAndTail; readonly after: MeanAndTail };
  /** Prompt tokens found in caches over all prompt tokens. */
  readonly hitRatio: { readonly before: number; readonly after: number };
}

export interface ComparedPolicies {
  readonly workload: WorkloadRequests;
  readonly clusters: Clusters;
  /** 1 for rows that count. */
  readonly counts: Uint8Array;
  readonly endpoints: readonly string[];
  readonly before: CandidateOutcome;
  readonly after: CandidateOutcome;
  readonly losses: { readonly before: Losses; readonly after: Losses };
}

const PROMPTS = ["< 1K tokens", "1K-4K", "4K-16K", "16K-64K", ">= 64K"] as const;
const TURNS = ["first turn", "turns 2-4", "turns 5-16", "later turns"] as const;

/** Where a gain comes from: by length of prompts, turn of a conversation, and tokens found in caches. */
export function gainParts(compared: ComparedPolicies): GainParts {
  const { workload, clusters, counts, losses } = compared;
  const prompts = PROMPTS.map(() => newSums());
  const turns = TURNS.map(() => newSums());
  let [all, cachedBefore, cachedAfter, tokens] = [0, 0, 0, 0];
  for (const { index, promptTokens } of workload) {
    const [before, after] = [losses.before[index]!, losses.after[index]!];
    if (counts[index] !== 1 || Number.isNaN(before - after)) continue;
    all += before - after;
    tokens += promptTokens;
    cachedBefore += compared.before.cachedTokens[index]! || 0;
    cachedAfter += compared.after.cachedTokens[index]! || 0;
    const turn = clusters.turn[index]!;
    const thousands = Math.floor(promptTokens / 1000);
    const prompt = thousands < 1 ? 0 : thousands < 4 ? 1 : thousands < 16 ? 2 : thousands < 64 ? 3 : 4;
    for (const sums of [prompts[prompt]!, turns[turn === 0 ? 0 : turn < 4 ? 1 : turn < 16 ? 2 : 3]!]) {
      sums.requests++;
      sums.before += before;
      sums.after += after;
    }
  }
  const part = (labels: readonly string[], sums: readonly Sums[]) =>
    sums.flatMap(({ requests, before, after }, i): GainPart[] =>
      requests === 0
        ? []
        : [
            {
              label: labels[i]!,
              requests,
              before: before / requests,
              after: after / requests,
              share: all === 0 ? 0 : (before - after) / all,
            },
          ],
    );
  return {
    byPrompt: part(PROMPTS, prompts),
    byTurn: part(TURNS, turns),
    byEndpoint: endpointParts(compared),
    causes: causesOf(masked(compared.after, counts), masked(compared.before, counts)),
    figures: { before: figuresFor(compared.before, counts), after: figuresFor(compared.after, counts) },
    hitRatio: { before: cachedBefore / Math.max(1, tokens), after: cachedAfter / Math.max(1, tokens) },
  };
}

interface Sums {
  requests: number;
  before: number;
  after: number;
}

function newSums(): Sums {
  return { requests: 0, before: 0, after: 0 };
}

function endpointParts({ counts, endpoints, before, after, losses }: ComparedPolicies): EndpointPart[] {
  const sumsOf = ({ endpoint }: CandidateOutcome, loss: Losses) => {
    const sums = endpoints.map(() => ({ requests: 0, loss: 0 }));
    for (let row = 0; row < counts.length; row++) {
      const own = sums[endpoint[row]!];
      if (counts[row] !== 1 || own === undefined || Number.isNaN(loss[row]!)) continue;
      own.requests++;
      own.loss += loss[row]!;
    }
    return sums;
  };
  const [then, now] = [sumsOf(before, losses.before), sumsOf(after, losses.after)];
  return endpoints.map((endpoint, i) => ({
    endpoint,
    requestsBefore: then[i]!.requests,
    requestsAfter: now[i]!.requests,
    before: then[i]!.loss / Math.max(1, then[i]!.requests),
    after: now[i]!.loss / Math.max(1, now[i]!.requests),
  }));
}

function masked(outcome: CandidateOutcome, counts: Uint8Array): CandidateOutcome {
  return { ...outcome, e2eMicros: outcome.e2eMicros.map((value, row) => (counts[row] === 1 ? value : NaN)) };
}

function figuresFor(outcome: CandidateOutcome, counts: Uint8Array): MeanAndTail {
  return perMetric((metric) => {
    const figures = figuresOf(outcome[metric].filter((_, row) => counts[row] === 1));
    return figures && { mean: figures.mean, p99: figures.p99 };
  });
}
