import * as z from "zod";
import type { Decision } from "#core/input/decision.ts";
import type { Load } from "#core/endpoint/endpoint.ts";
import type { Snapshot } from "#core/endpoint/snapshot.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import { FIRST_POLICY_VERSION } from "#core/plugin/spec.ts";
import { ELIGIBILITY } from "#core/endpoint/eligibility.ts";
import { buildProfile } from "#core/profile/build-profile.ts";
import { explainedPrefill, marksOf } from "./explained-prefill.ts";
import { filteredReason } from "#core/profile/profile.ts";
import { nameHash, randomFor } from "#core/base/random.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/base/units.ts";
import { ConfigError } from "#config/config-error.ts";
import { checkShape, problemLine } from "#config/problem.ts";
import type { NamedProfile } from "#config/profile-file.ts";
import { BLOCK_TOKENS_MAX } from "#config/schema-value.ts";

const count = () => z.number().min(0).max(1e12);
const share = () => z.number().min(0).max(1);
/** Shares of it are taken. */
const limit = () => z.number().min(1).max(1e12);

const load = z.strictObject({
  running: count().optional(),
  waiting: count().optional(),
  kvUtilization: share().optional(),
  prefixHitRatio: share().optional(),
  ttftMillis: count().optional(),
  tpotMillis: count().optional(),
  tokensPerSecond: count().optional(),
  adaptersRunning: z.array(z.string()).optional(),
  adaptersWaiting: z.array(z.string()).optional(),
  adaptersMax: count().optional(),
  watts: count().optional(),
  smUtilization: share().optional(),
});

const endpoint = z.strictObject({
  id: z.string().min(1),
  models: z.array(z.string()).default([]),
  labels: z.record(z.string(), z.string()).default({}),
  kvCapacityTokens: limit().optional(),
  concurrencyMax: limit().optional(),
  cordoned: z.boolean().default(false),
  asleep: z.boolean().default(false),
  /** The last scrape; left out, there never was one. */
  load: load.optional(),
  ageMillis: count().default(0),
  requestsInFlight: count().default(0),
  prefillTokensQueued: count().default(0),
  decodeTokens: count().default(0),
  promptTokensInFlight: count().default(0),
  hitTokens: count().default(0),
  /** What the router itself saw. */
  ttftMillis: count().optional(),
  tpotMillis: count().optional(),
});

/** A state to decide on: one request, and the endpoints as the router would see them. */
const STATE_SCHEMA = z.strictObject({
  request: z.strictObject({
    model: z.string().default(""),
    promptTokens: z.int().min(0).max(1e9),
    outputTokensMax: z.int().min(1).max(1e9).optional(),
    tenant: z.string().default(""),
    session: z.string().default(""),
    sloClass: z.string().default(""),
    priority: z.number().default(0),
  }),
  endpoints: z.array(endpoint).max(4096),
  blockTokens: z.int().min(1).max(BLOCK_TOKENS_MAX).default(16),
  staleAfterMillis: count().default(3000),
  seed: z.int().min(0).default(1),
  /** Decisions made before this one; names its random draws. */
  sequence: z.int().min(0).default(0),
});

/** Checked; what was left out has its default. */
type State = z.infer<typeof STATE_SCHEMA>;

/** Throws ConfigError with all that is wrong with it. */
export function stateOf(value: unknown, from: string): State {
  const checked = checkShape(STATE_SCHEMA, value);
  if (!checked.ok) throw new ConfigError(checked.problems.map((problem) => problemLine(problem, from)));
  return checked.value;
}

/** What a profile decides in a given state, with nothing that happened before. */
export function decideState(profile: NamedProfile, state: State): Decision {
  const request = requestOf(state);
  const snapshots = state.endpoints.map((one) => snapshotOf(one, state)).sort((a, b) => (a.id < b.id ? -1 : 1));
  const cordoned = new Set(state.endpoints.filter((one) => one.cordoned).map((one) => one.id));
  const asleep = new Set(state.endpoints.filter((one) => one.asleep).map((one) => one.id));
  const built = buildProfile(profile.name, profile.spec);
  const ineligible = marksOf(snapshots, ({ id, endpoint }) => {
    if (endpoint.models.length > 0 && !endpoint.models.includes(request.model)) return "unknown-model";
    if (cordoned.has(id)) return "cordoned";
    if (asleep.has(id)) return "asleep";
    return built.division?.roles.may("decode", endpoint) === false ? "role" : "";
  });
  const ids = snapshots.map((snapshot) => snapshot.id);
  const random = randomFor(state.seed, state.sequence);
  const choice = built.choose(request, snapshots, ids, ineligible, random);
  const common = {
    at: 0,
    sequence: state.sequence,
    requestId: request.id,
    attempt: 1,
    profile: profile.name,
    policyVersion: FIRST_POLICY_VERSION,
    breakdown: choice.breakdown,
  };
  const chosen = snapshots[choice.index];
  if (chosen === undefined) {
    const known = ineligible.some((why) => why !== ELIGIBILITY.indexOf("unknown-model"));
    const sleeps = ineligible.includes(ELIGIBILITY.indexOf("asleep"));
    const nobody = sleeps ? "asleep" : known || snapshots.length === 0 ? "no-endpoint" : "unknown-model";
    return { kind: "rejected", ...common, reason: choice.reason === "" ? nobody : filteredReason(choice) };
  }
  const forecast = built.forecast(request, snapshots, choice);
  const usedLedger = snapshots.some((snapshot) => snapshot.freshness !== "fresh");
  const prefill =
    built.division && explainedPrefill(built.division, { request, snapshots, ids, ineligible, chosen, random });
  return {
    kind: "routed",
    ...common,
    endpoint: chosen.id,
    reason: choice.reason,
    hitTokens: chosen.hitTokens,
    prefixSource: chosen.prefixSource,
    usedLedger,
    ...(forecast !== undefined && typeof prefill !== "object" && { forecast }),
    ...(typeof prefill === "object" && { prefill }),
    ...(typeof prefill === "string" && { colocated: prefill }),
  };
}

function requestOf({ request, blockTokens }: State): RouteRequest {
  const { outputTokensMax, ...rest } = request;
  return {
    id: "explained",
    ...rest,
    promptTokensExact: true,
    outputTokensMax,
    sequences: 1,
    blocks: chainOf(request.session, Math.floor(request.promptTokens / blockTokens), blockTokens),
    profile: "",
  };
}

/** Hashes that stay the same for a session, so that ties by prefix do too. */
function chainOf(session: string, length: number, blockTokens: number): BlockChain {
  const random = randomFor(nameHash(session), 0);
  return { hashes: Int32Array.from({ length: 2 * length }, () => random.below(2 ** 32) | 0), length, blockTokens };
}

function snapshotOf(given: State["endpoints"][number], state: State): Snapshot {
  const { id, models, labels, kvCapacityTokens, concurrencyMax, ageMillis, hitTokens, requestsInFlight } = given;
  const scraped = given.load === undefined ? undefined : loadOf(given.load);
  const fresh = scraped !== undefined && ageMillis <= state.staleAfterMillis;
  const seen = fresh && scraped.running !== undefined ? scraped.running + (scraped.waiting ?? 0) : 0;
  const ownTokens = given.promptTokensInFlight + given.decodeTokens;
  const ownShare = kvCapacityTokens === undefined ? 0 : Math.min(1, ownTokens / kvCapacityTokens);
  return {
    id,
    endpoint: { id, models, labels, kvCapacityTokens, concurrencyMax },
    at: MICROS_PER_SECOND,
    freshness: scraped === undefined ? "unknown" : fresh ? "fresh" : "stale",
    loadAgeMicros: scraped === undefined ? -1 : ageMillis * MICROS_PER_MILLI,
    load: scraped,
    effectiveLoad: Math.max(seen, requestsInFlight),
    kvUtilization: (fresh ? scraped.kvUtilization : undefined) ?? ownShare,
    requestsInFlight,
    prefillTokensQueued: given.prefillTokensQueued,
    decodeTokens: given.decodeTokens,
    promptTokensInFlight: given.promptTokensInFlight,
    hitBlocks: Math.floor(Math.min(hitTokens, state.request.promptTokens) / state.blockTokens),
    hitTokens: Math.min(hitTokens, state.request.promptTokens),
    prefixSource: "approximate",
    ttftMicros: micros(given.ttftMillis),
    tpotMicros: micros(given.tpotMillis),
  };
}

function loadOf({ ttftMillis, tpotMillis, ...given }: z.infer<typeof load>): Load {
  return {
    running: given.running,
    waiting: given.waiting,
    kvUtilization: given.kvUtilization,
    prefixHitRatio: given.prefixHitRatio,
    ttftMicros: micros(ttftMillis),
    tpotMicros: micros(tpotMillis),
    tokensPerSecond: given.tokensPerSecond,
    adaptersRunning: given.adaptersRunning,
    adaptersWaiting: given.adaptersWaiting,
    adaptersMax: given.adaptersMax,
    watts: given.watts,
    smUtilization: given.smUtilization,
  };
}

function micros(millis: number | undefined): number | undefined {
  return millis === undefined ? undefined : millis * MICROS_PER_MILLI;
}
