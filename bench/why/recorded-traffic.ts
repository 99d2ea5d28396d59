import { nameHash } from "#core/base/random.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { choiceWorkload } from "../default-choice/choice-workload.ts";
import type { HalfName } from "../default-choice/case.ts";
import { LIVE_CASES, type LiveCase } from "../live-policies/live-case.ts";
import { ENGINE, type InjectedTraffic } from "./injected-cause.ts";

/** What others recorded: Mooncake's conversations, and coding agents' sessions (WEKA). */
export const RECORDED_NAMES = ["conversations", "sessions"] as const;
export type RecordedName = (typeof RECORDED_NAMES)[number];

/** What scales them, how many requests at most, every how many-th conversation, and room of usual and small caches. */
const RECORDED = {
  conversations: {
    live: "conversations",
    scales: { rateScale: 240, tokenScale: 0.2, outputScale: 0.2 },
    requests: Infinity,
    every: 24,
    kvBlocks: 8_000,
    small: 700,
  },
  sessions: {
    live: "agents",
    scales: { tokenScale: 0.1, outputScale: 0.2, sessionsPerSecond: 10, thinkSecondsMax: 1 },
    requests: 300,
    every: 1,
    kvBlocks: 12_000,
    small: 1_700,
  },
} as const;
/** Of the hot tenant: unshared prompts of a third recording (Azure), so many times as long as there. */
const HOT = { requests: 90, tokenScale: 2.2 };
const TENANTS = ["red", "green", "blue", "hot"];
const LOAD_FACTOR = 2;
/** Windows of each half of Azure's recording. */
const AZURE_SEEDS = 24;
const ANSWER_TOKENS_MAX = 1_000;

interface RecordedAsked {
  readonly name: RecordedName;
  readonly cause: string;
  readonly seed: number;
  /** Folder of the recordings. */
  readonly traces: string;
}

/**
 * Traffic that others recorded and its caches; with the hot tenant, or twice as fast, where that is the cause. Seeds from 0
 * to 47 have no conversation in common; of sessions, seeds of one parity have the same ones in another order.
 */
export async function recordedTraffic({ name, cause, seed, traces }: RecordedAsked): Promise<InjectedTraffic> {
  const { live, scales, requests: count, every, kvBlocks, small } = RECORDED[name];
  const half = seed % 2 === 0 ? "choosing" : "held-out";
  const place = seed >> 1;
  const all = await choiceWorkload({ ...caseOf(live), ...scales }, half, place, count, traces, 1);
  const promptTokensMax = (small - 1) * ENGINE.blockTokens - ANSWER_TOKENS_MAX;
  const known = new Set<string>();
  const usual = all
    .filter(isOfSome(every, place))
    .filter(({ session, parent, joins, promptTokens }) => {
      // Without a turn those that follow it cannot come.
      const follows = [parent?.session, ...joins].every((before) => before === undefined || known.has(before));
      if (!follows || promptTokens > promptTokensMax) return false;
      known.add(session);
      return true;
    })
    .map((request) => ({ ...request, tenant: tenantOf(request, cause === "tenant") }));
  const first = Math.min(...usual.map(({ arrivalMicros }) => arrivalMicros));
  const factor = cause === "load" ? LOAD_FACTOR : 1;
  const others = usual.map((one) => ({ ...one, arrivalMicros: Math.round((one.arrivalMicros - first) / factor) }));
  const both = cause === "tenant" ? [...others, ...(await hotTenant(others, half, place, traces))] : others;
  // Those that follow others stay behind them.
  const inOrder = both
    .map((request, i) => [request, i] as const)
    .sort(([a, i], [b, j]) => a.arrivalMicros - b.arrivalMicros || i - j);
  return { requests: inOrder.map(([request], index) => ({ ...request, index })), kvBlocks, smallKvBlocks: small };
}

function caseOf(name: string): LiveCase {
  const one = LIVE_CASES.find((each) => each.name === name);
  if (one === undefined) throw new RangeError(`no case ${name}`);
  return one;
}

/** Every so many-th conversation, known by what its prompts begin with behind what all begin with. */
function isOfSome(every: number, place: number): (request: WorkloadRequest) => boolean {
  const places = new Map<number, number>();
  return ({ index, blockIds }) => {
    const key = blockIds?.[1] ?? -1 - index;
    const own = places.get(key) ?? places.size;
    places.set(key, own);
    return own % every === place % every;
  };
}

/** By conversation; of one that names none, by what its prompt begins with. */
function tenantOf({ session, blockIds, index }: WorkloadRequest, hasHot: boolean): string {
  const key = session === "" ? String(blockIds?.[1] ?? index) : session;
  const count = hasHot ? TENANTS.length - 1 : TENANTS.length;
  return TENANTS[(nameHash(key) >>> 0) % count]!;
}

/** Over the first two thirds of the others' time. */
async function hotTenant(
  others: readonly WorkloadRequest[],
  half: HalfName,
  place: number,
  traces: string,
): Promise<WorkloadRequest[]> {
  const { requests, tokenScale } = HOT;
  const azure = { ...caseOf("unshared chat"), tokenScale, outputScale: 1 };
  const some = await choiceWorkload(azure, half, place, requests, traces, AZURE_SEEDS);
  const last = Math.max(...others.map(({ arrivalMicros }) => arrivalMicros), 10 * MICROS_PER_SECOND);
  const scale = ((2 / 3) * last) / Math.max(...some.map(({ arrivalMicros }) => arrivalMicros));
  return some.map((request) => ({
    ...request,
    session: "",
    tenant: "hot",
    arrivalMicros: Math.round(request.arrivalMicros * scale),
  }));
}
