import type { Decision, RoutedPrefill } from "#core/input/decision.ts";
import type { EndpointRow } from "#core/fleet/endpoint-row.ts";
import type { Forecast } from "#core/latency/forecast.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";
import { WALL_START_MICROS } from "../base/clock.ts";
import { decisiveText } from "../base/decisive.ts";
import type { KeptDecision } from "./shown-decisions.ts";
import { cameText, paceOf } from "./what-came.ts";
import type { ScrapeRow } from "../keeper/fleet-keeper.ts";
import type { FollowerRow } from "../kv-events/follower.ts";
import type { EndpointEntry } from "../endpoints/endpoint-directory.ts";

/**
 * One endpoint as /gnomon/endpoints shows it. `row` is undefined while the router does not know it: what only the router
 * knows is null then. No key.
 */
export function endpointView(
  entry: EndpointEntry,
  row: EndpointRow | undefined,
  scrape: ScrapeRow | undefined,
  events: FollowerRow | undefined,
) {
  return {
    id: entry.id,
    url: entry.url,
    dataParallelRank: entry.dataParallelRank ?? null,
    state: entry.state,
    detail: entry.detail,
    models: entry.models.map((model) => model.id),
    blockTokens: entry.blockTokens ?? null,
    ...(row === undefined ? ROUTER_VIEW_EMPTY : routerView(row)),
    scrape: scrape === undefined ? null : scrapeView(scrape),
    kvEvents: events === undefined ? null : eventsView(events),
  };
}

function routerView(row: EndpointRow) {
  const { endpoint, load } = row;
  return {
    labels: endpoint.labels,
    kvCapacityTokens: endpoint.kvCapacityTokens ?? null,
    concurrencyMax: endpoint.concurrencyMax ?? null,
    cordoned: row.cordoned,
    asleep: row.asleep,
    breaker: row.breaker,
    standing: row.standing,
    ejected: row.ejected,
    share: row.share,
    signals: {
      freshness: row.freshness,
      ageMillis: row.loadAgeMicros < 0 ? null : row.loadAgeMicros / MICROS_PER_MILLI,
      running: load?.running ?? null,
      waiting: load?.waiting ?? null,
      kvUtilization: load?.kvUtilization ?? null,
      prefixHitRatio: load?.prefixHitRatio ?? null,
      ttftMillis: millis(load?.ttftMicros),
      tpotMillis: millis(load?.tpotMicros),
      tokensPerSecond: load?.tokensPerSecond ?? null,
      adaptersRunning: load?.adaptersRunning ?? null,
      adaptersWaiting: load?.adaptersWaiting ?? null,
      adaptersMax: load?.adaptersMax ?? null,
    },
    ledger: {
      requestsInFlight: row.requestsInFlight,
      prefillTokensQueued: row.prefillTokensQueued,
      decodeTokens: row.decodeTokens,
      promptTokensInFlight: row.promptTokensInFlight,
    },
    effectiveLoad: row.effectiveLoad,
    kvUtilization: row.kvUtilization,
    observed: { ttftMillis: millis(row.ttftMicros), tpotMillis: millis(row.tpotMicros) },
    indexBlocks: row.indexBlocks,
    prefix: { source: row.knowledge.source, reason: row.knowledge.reason },
  };
}

function eventsView({ publisher, replay, state, link, feed, knownBlocks }: FollowerRow) {
  return { publisher, replay: replay ?? null, state, knownBlocks, ...link, ...feed };
}

const ROUTER_VIEW_EMPTY: Readonly<Record<keyof ReturnType<typeof routerView>, null>> = {
  labels: null,
  kvCapacityTokens: null,
  concurrencyMax: null,
  cordoned: null,
  asleep: null,
  breaker: null,
  standing: null,
  ejected: null,
  share: null,
  signals: null,
  ledger: null,
  effectiveLoad: null,
  kvUtilization: null,
  observed: null,
  indexBlocks: null,
  prefix: null,
};

function scrapeView({ counts, ageMicros, lastError }: ScrapeRow) {
  return {
    ageMillis: ageMicros < 0 ? null : ageMicros / MICROS_PER_MILLI,
    scrapes: counts.scrapes,
    errors: counts.errors,
    skipped: counts.skipped,
    lastError,
  };
}

/** One decision as /gnomon/decisions shows it: everything that led to it, and what came of it. `startWallMicros` is the wall time of 0. */
export function decisionView(kept: KeptDecision, startWallMicros = WALL_START_MICROS) {
  const { decision, model, promptTokens, promptTokensExact, decisionMicros } = kept;
  const { at, sequence, requestId, attempt, profile, policyVersion, kind, reason } = decision;
  const routed = decision.kind === "routed" ? decision : undefined;
  return {
    at: wallTime(startWallMicros + at),
    sequence,
    requestId,
    attempt,
    profile,
    policyVersion,
    kind,
    endpoint: routed?.endpoint ?? null,
    reason,
    why: whyText(decision, promptTokens, promptTokensExact),
    prefill: routed?.prefill === undefined ? null : prefillView(routed.prefill),
    colocated: routed?.colocated ?? null,
    hitTokens: routed?.hitTokens ?? null,
    prefixSource: routed?.prefixSource ?? null,
    usedLedger: routed?.usedLedger ?? null,
    model: model ?? null,
    promptTokens: promptTokens ?? null,
    expected: routed?.forecast === undefined ? null : expectedView(routed.forecast),
    came: cameView(kept),
    decisionMicros: Math.round(decisionMicros),
    clampedScores: decision.breakdown.clamped,
    scorers: decision.breakdown.scorers,
    candidates: candidateViews(decision),
  };
}

function expectedView({ ttftMicros, tpotMicros, nextTtftMicros }: Forecast) {
  return { ttftMillis: millis(ttftMicros), tpotMillis: millis(tpotMicros), nextTtftMillis: millis(nextTtftMicros) };
}

/** Times from the decision on. */
function cameView(kept: KeptDecision) {
  const { firstTokenMicros, endMicros, outcome, outputTokens, cachedTokens } = kept.came;
  return {
    text: cameText(kept),
    outcome: outcome ?? null,
    ttftMillis: millis(firstTokenMicros),
    tpotMillis: millis(paceOf(kept.came)),
    e2eMillis: millis(endMicros),
    outputTokens: outputTokens ?? null,
    cachedTokens: cachedTokens ?? null,
  };
}

function prefillView(prefill: RoutedPrefill) {
  const { breakdown, heldTokens: _held, noted: _noted, ...stated } = prefill;
  return { ...stated, scorers: breakdown.scorers, candidates: candidateViews(prefill) };
}

/** The sentence of the answer's header; for a retry, whose prompt the first decision has, the word alone. */
export function whyText(decision: Decision, promptTokens: number | undefined, exact = false): string {
  if (decision.kind !== "routed" || promptTokens === undefined) return decision.reason;
  return decisiveText(decision, { promptTokens, exact });
}

function candidateViews({ breakdown }: Pick<Decision, "breakdown">) {
  const { candidates, scorers, values, totals } = breakdown;
  return candidates.map(({ loadAgeMicros, ...candidate }, i) => ({
    ...candidate,
    loadAgeMillis: loadAgeMicros < 0 ? null : loadAgeMicros / MICROS_PER_MILLI,
    scores: Object.fromEntries(scorers.map(({ name }, s) => [name, number(values[s * candidates.length + i])])),
    total: number(totals[i]),
  }));
}

function wallTime(wallMicros: Micros): string {
  return new Date(wallMicros / MICROS_PER_MILLI).toISOString();
}

function millis(micros: number | undefined): number | null {
  return micros === undefined ? null : micros / MICROS_PER_MILLI;
}

/** NaN is none. */
function number(value: number | undefined): number | null {
  return value === undefined || Number.isNaN(value) ? null : value;
}
