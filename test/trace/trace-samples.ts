import { KEPT_REASONS } from "#core/request/cascade-input.ts";
import fc from "fast-check";
import type { Breakdown, Decision } from "#core/input/decision.ts";
import type { Endpoint, Load } from "#core/endpoint/endpoint.ts";
import { FAULTS } from "#core/endpoint/fault.ts";
import { KV_EVENTS_LOST_REASONS } from "#core/endpoint/knowledge.ts";
import type { Input } from "#core/input/input.ts";
import type { PeerNews } from "#core/request/peer-news.ts";
import { type BlockChain, EMPTY_CHAIN } from "#core/prompt/block-chain.ts";
import { mix32 } from "#core/base/random.ts";
import { OBSERVED_BY } from "#core/request/observed-place.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { Judge, type SavedJudge } from "#core/rollout/judge/judge.ts";
import { plannedRollout } from "#core/rollout/rollout-state.ts";
import type { TraceHeader } from "#trace/codec/record.ts";
import { ANY_CHARACTER } from "../any-character.ts";
import { DESIGNS, plannedOf, planOf, RULES, stepOf } from "../core/rollout/rollout-case.ts";

/** Arbitrary parts of a trace, for properties over the codec. */

export const HEADER: TraceHeader = {
  version: 1,
  run: "0a1b2c3d",
  segment: 0,
  startWallMicros: 1_790_000_000_123_456,
  router: {
    seed: 7,
    profiles: {
      weighted: {
        filters: [],
        scorers: [{ plugin: "queue-depth", weight: 2, parameters: {} }],
        picker: { plugin: "max-score", parameters: { tieBreak: "random", epsilon: 0.25, deep: true } },
      },
      shared: {
        filters: [],
        scorers: [],
        picker: { plugin: "random", parameters: {} },
        disaggregation: {
          prefill: {
            filters: [{ plugin: "power-of-two", parameters: {} }],
            scorers: [],
            picker: { plugin: "round-robin", parameters: {} },
          },
          colocateBelowTokens: 256,
          promptTokensMin: 0,
          handoff: "together",
          roles: { label: "role-name", prefill: ["p"], decode: ["d", "b"], unlabelled: "none", pairLabel: "set" },
        },
      },
    },
    defaultProfile: "weighted",
    blockTokens: 16,
    staleAfterMicros: 2_000_000,
    breaker: {
      failuresMax: 3,
      pauseMicros: 1,
      pauseMicrosMax: 2,
      jitterShare: 0.5,
      saturatedPauseMicros: 3,
      drainingPauseMicros: 4,
    },
  },
  hash: { algorithm: "blake3", blockTokens: 16, tokenizer: "estimate" },
  endpoints: [],
};

/**
 * A chain whose block i depends on all symbols up to i, as a real one does. Few symbols make many shared prefixes.
 */
export function chainOf(symbols: readonly number[], blockTokens = 16): BlockChain {
  const hashes = new Int32Array(2 * symbols.length);
  let low = 1;
  let high = 2;
  symbols.forEach((symbol, i) => {
    low = mix32(low ^ mix32(symbol + 1)) | 0;
    high = mix32(high ^ low) | 0;
    hashes[2 * i] = low;
    hashes[2 * i + 1] = high;
  });
  return { hashes, length: symbols.length, blockTokens };
}

const finite = fc.double({ noNaN: true, noDefaultInfinity: true });
const count = fc.nat(1_000_000);
/** Records of the usual prototype, as the code makes them. */
const record = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record(model, { noNullPrototype: true }) as fc.Arbitrary<T>;
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const word = fc.string({ unit: ANY_CHARACTER, maxLength: 12 });

const chains: fc.Arbitrary<BlockChain> = fc
  .tuple(fc.array(fc.nat(2), { maxLength: 24 }), fc.constantFrom(16, 16, 128, 15.750000000000002))
  .map(([symbols, blockTokens]) => chainOf(symbols, blockTokens));

const requests: fc.Arbitrary<RouteRequest> = record({
  id: word,
  model: word,
  tenant: word,
  session: word,
  sloClass: word,
  priority: fc.integer({ min: -5, max: 5 }),
  promptTokens: count,
  promptTokensExact: fc.boolean(),
  outputTokensMax: maybe(count),
  sequences: fc.integer({ min: 1, max: 4 }),
  blocks: chains,
  profile: word,
}).chain((request) =>
  fc.constantFrom(
    request,
    { ...request, cacheRead: false },
    { ...request, tokensByPrompt: [1_200, 0, 7] },
    { ...request, subset: [] },
    { ...request, subset: ["a", "b#1"] },
    { ...request, undivided: true as const },
    { ...request, timeoutMicros: 30_000_000 },
    { ...request, slo: { ttftMicros: 500_000 } },
    { ...request, slo: { ttftMicros: 500_000, tpotMicros: 12_500 } },
  ),
);

const endpoints: fc.Arbitrary<Endpoint> = record({
  id: word,
  models: fc.array(word, { maxLength: 3 }),
  labels: fc.dictionary(word, word, { maxKeys: 3, noNullPrototype: true }),
  kvCapacityTokens: maybe(count),
  concurrencyMax: maybe(count),
}).chain((endpoint) => fc.constantFrom(endpoint, { ...endpoint, stepTimes: STEP_TIMES }));

const STEP_TIMES = {
  stepMicros: 6_000.5,
  prefillTokenMicros: 22.25,
  sequenceMicros: 13,
  contextTokenMicros: 0.0625,
  stepTokensMax: 8_192,
};

const loads: fc.Arbitrary<Load> = record({
  running: maybe(count),
  waiting: maybe(count),
  kvUtilization: maybe(finite),
  prefixHitRatio: maybe(finite),
  ttftMicros: maybe(finite),
  tpotMicros: maybe(finite),
  tokensPerSecond: maybe(finite),
  adaptersRunning: maybe(fc.array(word, { maxLength: 2 })),
  adaptersWaiting: maybe(fc.array(word, { maxLength: 2 })),
  adaptersMax: maybe(count),
  watts: maybe(finite),
  smUtilization: maybe(finite),
});

const peerChains = chains.map((chain) => (chain.length === 0 ? EMPTY_CHAIN : chain));
const charges: fc.Arbitrary<PeerNews> = record({
  kind: fc.constant("charged" as const),
  request: count,
  attempt: fc.integer({ min: 1, max: 3 }),
  endpoint: word,
  profile: word,
  reason: word,
  model: word,
  tenant: word,
  session: word,
  sequences: fc.integer({ min: 1, max: 4 }),
  promptTokens: count,
  promptTokensExact: fc.boolean(),
  newTokens: count,
  blocks: peerChains,
}).chain((charged) =>
  fc.constantFrom(
    charged,
    { ...charged, outputTokens: 5 },
    { ...charged, user: `of ${charged.tenant}`, outputTokensMax: 64 },
    { ...charged, prefill: { endpoint: charged.model, newTokens: 7 } },
    { ...charged, noted: { turn: true as const } },
    { ...charged, noted: { boundTo: charged.model, warm: true, load: NOTED_LOAD } },
    { ...charged, prefill: { endpoint: charged.model, newTokens: 7, noted: { warm: false } } },
  ),
);

const NOTED_LOAD = { effectiveLoad: 3, requestsInFlight: 2, prefillTokensQueued: 700, fresh: true };

/** Requests are numbered from 1. */
export const peerNews: fc.Arbitrary<PeerNews> = fc.tuple(count, count).chain(([before, amount]) => {
  const request = before + 1;
  return fc.oneof(
    charges,
    fc.constant<PeerNews>({ kind: "first-token", request, ttftMicros: amount }),
    fc.constant<PeerNews>({ kind: "prefilled", request, prefillMicros: amount }),
    fc.constant<PeerNews>({ kind: "progress", request, outputTokens: amount }),
    fc.constant<PeerNews>({ kind: "failed", request }),
    fc.constant<PeerNews>({
      kind: "used",
      model: "m",
      tenant: "t",
      ...(amount % 2 === 0 && { user: "u" }),
      requests: request,
      promptTokens: amount,
      outputTokens: before,
    }),
    fc.constant<PeerNews>({
      kind: "window",
      limit: "l",
      measure: "rate-limit all 1",
      subject: "",
      passedMicros: amount,
      ...(amount % 2 === 0 && { ageMicros: before }),
      counts: [before],
    }),
    maybe(count).map((tokens): PeerNews => {
      const counts = { promptTokens: tokens, outputTokens: tokens, decodeMicros: tokens };
      return { kind: "released", request, outcome: "ok", ...counts };
    }),
    fc
      .tuple(word, maybe(word), peerChains)
      .map(([endpoint, session, blocks]): PeerNews => ({ kind: "held", endpoint, session, blocks })),
    word.map((endpoint): PeerNews => ({ kind: "breaker", endpoint, state: "open", pauseMicros: amount })),
  );
});

const hashes = fc
  .array(fc.integer({ min: -0x8000_0000, max: 0x7fff_ffff }), { maxLength: 8 })
  .map((words) => Int32Array.from([...words, ...words]));

/** Every kind of input of rollouts, of every design. */
function rolloutInputs(at: number): fc.Arbitrary<Input> {
  const plans = fc.tuple(fc.constantFrom(...DESIGNS), fc.nat(1000)).map(([design, seed]) => planOf(design, 2, seed));
  const guardrails = [{ figure: "ttft.p90", relativeMax: 1.5, samplesMin: 3 }] as const;
  const predictions = [{ arm: 1, metric: "e2e", figure: "mean", low: -1.5, high: 3 }] as const;
  const rules = { ...RULES, guardrails, predictions, awaitsPredictions: true };
  return fc
    .tuple(plans, word, fc.integer(), fc.array(fc.nat(Number.MAX_SAFE_INTEGER)))
    .chain(([plan, reason, shift, keys]) => {
      const planned = plannedOf(plan, at, rules);
      const state = { ...plannedRollout(plan, shift), phase: "running", canaryStep: 1, reason } as const;
      const judge = JSON.parse(JSON.stringify(new Judge({ plan, ...rules }).saved())) as SavedJudge;
      const restored = { kind: "rollout-restored", at, state, rules, profiles: planned.profiles } as const;
      const agreements = [{ decisions: 3, agreed: 2, addedHitTokens: -16 }];
      return fc.constantFrom<Input>(
        planned,
        restored,
        { ...restored, judge, agreements },
        { ...stepOf("advance", at), reason },
        { kind: "rollout-removed", at, rollout: reason },
        { kind: "rollout-look", at },
        { kind: "rollout-predicted", at, rollout: reason, requests: [[reason, 1, null, 3.5]] },
        { kind: "rollout-shared", at, rollout: reason, together: false, entries: [], replica: "", open: [] },
        {
          kind: "rollout-shared",
          at,
          rollout: reason,
          together: true,
          judge,
          entries: [{ kind: "advanced", at: shift }],
          replica: reason,
          open: [[1, shift, 2, shift, null]],
        },
        { kind: "sessions-restored", at, keys },
      );
    });
}

const logprob = fc.double({ min: -20, max: -1e-9, noNaN: true });

const observedPlaces = fc
  .tuple(word, fc.constantFrom(...OBSERVED_BY), fc.double({ min: 0, max: 1, noNaN: true }))
  .map(([endpoint, by, sure]) => ({ endpoint, by, sure: sure + 0 }));

export const inputs: fc.Arbitrary<Input> = fc.nat(1e12).chain((at) =>
  fc.oneof(
    fc
      .tuple(requests, fc.option(observedPlaces))
      .map(([request, observed]): Input => ({ kind: "request-arrived", at, request, ...(observed && { observed }) })),
    word.map((requestId): Input => ({ kind: "request-retried", at, requestId })),
    word.map((requestId): Input => ({ kind: "request-released", at, requestId })),
    word.map((requestId): Input => ({ kind: "first-token", at, requestId })),
    word.map((requestId): Input => ({ kind: "request-hedged", at, requestId })),
    fc
      .tuple(word, fc.constantFrom("first" as const, "second" as const), fc.option(fc.constantFrom(...FAULTS)))
      .map(([requestId, winner, fault]): Input => {
        return { kind: "hedge-settled", at, requestId, winner, ...(fault !== null && { fault }) };
      }),
    fc.tuple(word, word).map(([requestId, endpoint]): Input => ({ kind: "request-moved", at, requestId, endpoint })),
    fc
      .tuple(word, count)
      .map(([requestId, outputTokens]): Input => ({ kind: "progress", at, requestId, outputTokens })),
    fc
      .tuple(word, fc.constantFrom("connect", "cut", "garbage", "hung"))
      .map(([requestId, fault]): Input => ({ kind: "attempt-failed", at, requestId, fault })),
    fc
      .tuple(word, fc.constantFrom(...FAULTS))
      .map(([requestId, fault]): Input => ({ kind: "prefill-failed", at, requestId, fault })),
    fc
      .tuple(word, maybe(count))
      .map(([requestId, cachedTokens]): Input => ({ kind: "prefill-finished", at, requestId, cachedTokens })),
    word.map((requestId): Input => ({ kind: "transfer-failed", at, requestId })),
    fc
      .tuple(word, fc.constantFrom("cut", "draining"), count, maybe(hashes))
      .map(([requestId, fault, outputTokens, answerHashes]): Input => ({
        kind: "request-continued",
        at,
        requestId,
        fault,
        outputTokens,
        ...(answerHashes === undefined ? { byText: true as const } : { answerHashes }),
      })),
    fc
      .tuple(word, logprob, count, fc.constantFrom(...KEPT_REASONS))
      .map(([requestId, meanLogprob, tokens, kept]): Input => ({
        kind: "answer-judged",
        at,
        requestId,
        meanLogprob,
        tokens,
        kept,
      })),
    fc.tuple(requests, logprob, count).map(([request, meanLogprob, tokens]): Input => ({
      kind: "request-escalated",
      at,
      requestId: request.id,
      meanLogprob,
      tokens,
      request,
    })),
    fc
      .tuple(
        record({ requestId: word, promptTokens: maybe(count), cachedTokens: maybe(count), outputTokens: maybe(count) }),
        maybe(hashes),
        fc.boolean(),
      )
      .map(([counts, answerHashes, follows]): Input => ({
        kind: "request-finished",
        at,
        outcome: "aborted",
        ...counts,
        ...(answerHashes !== undefined && { answerHashes }),
        ...(follows && { answerFollows: true }),
      })),
    fc.tuple(word, maybe(hashes)).map(([requestId, answerHashes]): Input => ({
      kind: "answer-known",
      at,
      requestId,
      ...(answerHashes !== undefined && { answerHashes }),
    })),
    fc.integer({ min: 1, max: 4096 }).map((blockTokens): Input => ({ kind: "block-size-changed", at, blockTokens })),
    fc.tuple(word, loads).map(([endpoint, load]): Input => ({ kind: "load-observed", at, endpoint, load })),
    endpoints.map((endpoint): Input => ({ kind: "endpoint-joined", at, endpoint })),
    endpoints.map((endpoint): Input => ({ kind: "endpoint-changed", at, endpoint })),
    word.map((endpoint): Input => ({ kind: "endpoint-left", at, endpoint })),
    word.map((endpoint): Input => ({ kind: "endpoint-left", at, endpoint, lost: true })),
    word.map((endpoint): Input => ({ kind: "endpoint-cordoned", at, endpoint })),
    word.map((endpoint): Input => ({ kind: "endpoint-uncordoned", at, endpoint })),
    fc
      .tuple(word, fc.boolean())
      .map(([endpoint, healthy]): Input => ({ kind: "endpoint-checked", at, endpoint, healthy })),
    fc.tuple(word, fc.boolean(), fc.boolean()).map(([endpoint, asleep, emptied]): Input => ({
      kind: "endpoint-slept",
      at,
      endpoint,
      asleep,
      ...(emptied && { emptied: true }),
    })),
    fc
      .tuple(word, fc.constantFrom("silent", "stalled"))
      .map(([endpoint, reason]): Input => ({ kind: "endpoint-suspended", at, endpoint, reason })),
    fc
      .tuple(word, count)
      .map(([endpoint, servedUntilWell]): Input => ({ kind: "endpoint-resumed", at, endpoint, servedUntilWell })),
    word.map((endpoint): Input => ({ kind: "blocks-cleared", at, endpoint })),
    word.map((peer): Input => ({ kind: "peer-left", at, peer })),
    fc
      .tuple(word, count, fc.boolean(), fc.array(peerNews, { maxLength: 5 }))
      .map(([peer, epoch, snapshot, news]): Input => {
        const report = { kind: "peer-reported", at, peer, epoch, sequence: epoch + 1, news } as const;
        return { ...report, ...(snapshot && { snapshot }) };
      }),
    fc
      .tuple(word, fc.constantFrom("weighted", "shared"))
      .map(([name, of]): Input => ({ kind: "profile-changed", at, name, profile: HEADER.router.profiles[of]! })),
    fc.tuple(word, count).map(([source, number]): Input => {
      const profiles = { weighted: HEADER.router.profiles["weighted"]! };
      return { kind: "policy-changed", at, version: 1 + number, source, profiles, defaultProfile: "weighted" };
    }),
    rolloutInputs(at),
    fc.tuple(word, hashes).map(([endpoint, words]): Input => ({ kind: "blocks-stored", at, endpoint, hashes: words })),
    fc.tuple(word, hashes).map(([endpoint, words]): Input => ({ kind: "blocks-removed", at, endpoint, hashes: words })),
    fc.tuple(word, hashes, fc.integer({ min: 1, max: 9 })).map(([endpoint, words, unknownBlocks]): Input => ({
      kind: "blocks-removed",
      at,
      endpoint,
      hashes: words,
      unknownBlocks,
    })),
    fc.tuple(word, hashes).map(([endpoint, words]): Input => {
      const starts = Array.from({ length: Math.max(0, words.length / 2 - 1) }, (_, i) => i + 1);
      return { kind: "blocks-stored", at, endpoint, hashes: words, ...(starts.length > 0 && { starts }) };
    }),
    fc
      .tuple(word, hashes, fc.constantFrom("blocks-stored" as const, "blocks-removed" as const))
      .map(([endpoint, words, kind]): Input => ({ kind, at, endpoint, hashes: words, medium: "host" })),
    word.map((endpoint): Input => ({ kind: "blocks-cleared", at, endpoint, inOrder: true })),
    word.map((endpoint): Input => ({ kind: "kv-events-missed", at, endpoint })),
    fc
      .tuple(word, fc.boolean())
      .map(([endpoint, isComplete]): Input => ({ kind: "kv-events-alive", at, endpoint, isComplete })),
    fc
      .tuple(word, fc.constantFrom(...KV_EVENTS_LOST_REASONS))
      .map(([endpoint, reason]): Input => ({ kind: "kv-events-lost", at, endpoint, reason })),
  ),
);

/** A breakdown of `size` candidates, some of them removed by a filter. */
function breakdowns(size: fc.Arbitrary<number>): fc.Arbitrary<Breakdown> {
  const candidate = record({
    removed: fc.boolean(),
    load: finite,
    total: fc.double({ min: 0, max: 1, noNaN: true }),
    tokens: count,
  });
  return size
    .chain((length) => fc.array(candidate, { minLength: length, maxLength: length }))
    .map((rows) => ({
      candidates: rows.map((row, i) => ({
        endpoint: `http://engine-${String(i).padStart(3, "0")}:8000`,
        removedBy: row.removed ? "imbalance" : "",
        freshness: row.tokens % 2 === 0 ? "fresh" : "stale",
        loadAgeMicros: row.tokens - 1,
        effectiveLoad: row.load,
        kvUtilization: row.total,
        requestsInFlight: row.tokens,
        prefillTokensQueued: row.tokens,
        hitTokens: row.tokens,
        prefixSource: row.tokens % 3 === 0 ? "precise" : "approximate",
      })),
      scorers: [
        { name: "a", weight: 0.1 },
        { name: "b", weight: 0.9 },
      ],
      totals: Float64Array.from(rows, (row) => (row.removed ? NaN : row.total)),
      values: Float64Array.from([...rows, ...rows], (row) => (row.removed ? NaN : row.total / 3)),
      clamped: rows.length % 3,
    }));
}

export function decisions(size: fc.Arbitrary<number>): fc.Arbitrary<Decision> {
  return fc.tuple(breakdowns(size), fc.nat(9), fc.boolean()).map(([breakdown, sequence, refused]): Decision => {
    const attempt = 1 + (sequence % 3);
    const alternatives = [{ arm: 1, endpoint: "http://engine-1:8000", hitTokens: 32 }];
    const common = {
      at: 0,
      sequence,
      requestId: "",
      attempt,
      profile: "weighted",
      policyVersion: attempt,
      ...(sequence % 2 === 0 && {
        rollout: { name: "try", arm: "arm-1", window: sequence - 1, ...(sequence % 4 === 0 && { alternatives }) },
      }),
      breakdown,
    };
    const chosen = breakdown.candidates[sequence % Math.max(1, breakdown.candidates.length)];
    if (refused && sequence % 3 === 0) return { kind: "queued", ...common, reason: "rate-limit", limit: "per-minute" };
    if (refused && sequence % 3 === 1)
      return { kind: "rejected", ...common, reason: "usage-quota", limit: "per-day", retryMicros: 1_000 * sequence };
    if (refused || chosen === undefined) return { kind: "rejected", ...common, reason: "saturated" };
    const { endpoint: computes, prefixSource } = breakdown.candidates[0]!;
    const handoff = sequence % 2 === 0 ? "together" : "prefill-first";
    const prefill = {
      endpoint: computes,
      handoff,
      reason: "only",
      hitTokens: sequence,
      prefixSource,
      breakdown,
    } as const;
    const next = sequence % 2 === 0 ? {} : { nextTtftMicros: 3_000 * sequence };
    const forecast = { ttftMicros: 1_000 * sequence, tpotMicros: sequence, ...next };
    const stages = [{ forecast }, { prefill }, { colocated: "cached" as const, forecast }][sequence % 3];
    return {
      kind: "routed",
      ...common,
      ...stages,
      endpoint: chosen.endpoint,
      reason: "tie",
      hitTokens: sequence * 16,
      prefixSource: chosen.prefixSource,
      usedLedger: true,
    };
  });
}
