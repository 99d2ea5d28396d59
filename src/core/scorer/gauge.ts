import { runningRequests, scrapedAndOwnRequests, waitingRequests } from "../endpoint/gauge.ts";
import type { Snapshot } from "../endpoint/snapshot.ts";
import type { ParameterTable, ParameterValues } from "../plugin/parameter.ts";
import type { Definition, Plugin, Signal } from "../plugin/plugin.ts";
import type { RouteRequest } from "../request/request.ts";
import { lowerIsBetter } from "./min-max.ts";
import { type Scorer, scorerPlugin } from "./scorer.ts";

/** One number of an endpoint, at least 0: less is better. */
interface Gauge {
  readonly reads: readonly Signal[];
  /** A loop each: one that calls what is different each time makes an object of each number. */
  readonly read: (candidates: readonly Snapshot[], request: RouteRequest, into: Float64Array) => void;
}

/** Writes scores over gauges, in place. */
type Scale = (values: Float64Array, count: number) => void;

/** What an endpoint can be measured by. */
export const GAUGES = {
  /** Requests there, each once: our own in flight, and those of others as scraped. */
  requests: {
    reads: ["ledger", "scrape:load"],
    read: (candidates, _request, into) => {
      for (let i = 0; i < candidates.length; i++) into[i] = candidates[i]!.effectiveLoad;
    },
  },
  /** BLIS counts a request of our own twice once it shows in a scrape. */
  "scraped-and-own": {
    reads: ["ledger", "scrape:load"],
    read: (candidates, _request, into) => {
      for (let i = 0; i < candidates.length; i++) into[i] = scrapedAndOwnRequests(candidates[i]!);
    },
  },
  "own-requests": {
    reads: ["ledger"],
    read: (candidates, _request, into) => {
      for (let i = 0; i < candidates.length; i++) into[i] = candidates[i]!.requestsInFlight;
    },
  },
  waiting: {
    reads: ["scrape:load", "ledger"],
    read: (candidates, _request, into) => {
      for (let i = 0; i < candidates.length; i++) into[i] = waitingRequests(candidates[i]!);
    },
  },
  running: {
    reads: ["scrape:load", "ledger"],
    read: (candidates, _request, into) => {
      for (let i = 0; i < candidates.length; i++) into[i] = runningRequests(candidates[i]!);
    },
  },
  /** Share of its KV blocks, in [0, 1]. */
  "kv-used": {
    reads: ["scrape:kv", "ledger"],
    read: (candidates, _request, into) => {
      for (let i = 0; i < candidates.length; i++) into[i] = candidates[i]!.kvUtilization;
    },
  },
  /** Prompt tokens that it has yet to compute, those of this request that it does not hold included. */
  "prompt-tokens": {
    reads: ["ledger", "prefix-index"],
    read: (candidates, { promptTokens }, into) => {
      for (let i = 0; i < candidates.length; i++) {
        const { prefillTokensQueued, hitTokens } = candidates[i]!;
        into[i] = prefillTokensQueued + Math.max(0, promptTokens - hitTokens);
      }
    },
  },
} as const satisfies Readonly<Record<string, Gauge>>;

export type GaugeName = keyof typeof GAUGES;

/** score = 1 / (1 + value) */
export const inverse: Scale = (values, count) => {
  for (let i = 0; i < count; i++) values[i] = 1 / (1 + values[i]!);
};

/** score = most * (1 - min(value, full) / full) */
export function free(full: number, most = 1): Scale {
  return (values, count) => {
    for (let i = 0; i < count; i++) values[i] = most * (1 - Math.min(values[i]!, full) / full);
  };
}

/** score = (value - min) / (max - min), 1 where all are equal: the most scores best */
export const highest: Scale = (values, count) => {
  for (let i = 0; i < count; i++) values[i] = -values[i]!;
  lowerIsBetter(values, count);
};

interface GaugeDefinition<P extends ParameterTable> extends Omit<Definition<Scorer, P>, "create"> {
  value(parameters: ParameterValues<P>): Gauge["read"];
  scale(parameters: ParameterValues<P>): Scale;
}

/** A scorer that is one gauge and a scale. */
export function gaugeScorer<const P extends ParameterTable>(definition: GaugeDefinition<P>): Plugin<Scorer> {
  return scorerPlugin({
    ...definition,
    create: (name, parameters) => {
      const read = definition.value(parameters);
      const scale = definition.scale(parameters);
      return {
        name,
        score(request, candidates, scores) {
          read(candidates, request, scores);
          scale(scores, candidates.length);
        },
      };
    },
  });
}

const NAMES = Object.keys(GAUGES) as readonly GaugeName[];
const SCALES = ["between", "inverse", "free"] as const;

/** Any gauge on any scale; the scorers of load-gauges.ts are such, under names that the field knows. */
export const gauge = gaugeScorer({
  summary: "any one gauge of the endpoint, less being better, on a scale of your choice",
  reads: [...new Set(NAMES.flatMap((name): readonly Signal[] => GAUGES[name].reads))],
  readsWith: ({ gauge: name }) => GAUGES[name].reads,
  source: "gnomon",
  parameters: {
    gauge: { type: "choice", default: "requests", values: NAMES, meaning: "what is measured" },
    scale: {
      type: "choice",
      default: "between",
      values: SCALES,
      meaning: "between the candidates' least and most; inverse, 1 / (1 + value); free, 1 - value / full",
    },
    full: { type: "number", default: 64, min: 1e-6, meaning: "value that scores 0 on the scale free" },
  },
  value: ({ gauge: name }) => GAUGES[name].read,
  scale: ({ scale, full }) => (scale === "between" ? lowerIsBetter : scale === "inverse" ? inverse : free(full)),
});
