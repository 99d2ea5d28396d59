import type { EndpointId } from "#core/endpoint/endpoint.ts";
import { type Candidate, requestId, requestIndexOf, type Setting, simulationOf } from "#shadow/candidate/candidate.ts";
import { TRANSFER_DEFAULTS } from "#sim/setting/transfer-options.ts";
import type { SimulationOptions } from "#sim/setting/simulation-options.ts";
import { Simulation } from "#sim/simulation.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import type { SlowEngines } from "./engine-speeds.ts";

/**
 * What can be taken out of recorded traffic, one at a time and together:
 * - index: what the gateway did not know of caches, where that cost cached tokens; without it the profile in force
 *   decides anew and knows them. Before, requests go where they went
 * - policy: the profile in force, where it is not the default; without it the default one decides, by what a gateway
 *   knows, or, where that was wrong, by what caches hold
 * - cache: the engines' room for blocks
 * - tenant: the other conversations of the tenant that asks for most
 * - engines: what single engines are slower by than the fleet
 * - faults: engines that left, were lost, hung or slept
 * - transfer: the time that a prompt's blocks take from the engine that computed them to the one that answers
 */
export const CAUSES = ["index", "policy", "cache", "tenant", "engines", "faults", "transfer"] as const;
export type Removable = (typeof CAUSES)[number];

/** The traffic that is asked about, and everything that may be taken out of it. */
export interface TrafficAsked {
  readonly setting: Setting;
  readonly inForce: Candidate;
  /** Decides once the policy in force is taken out. */
  readonly otherwise: Candidate;
  /** Where each request really went, by its place in the workload; "" or undefined for nobody knows. */
  readonly sentTo: readonly (EndpointId | undefined)[] | undefined;
  readonly tenant: string | undefined;
  /** Its requests that are asked about stay. */
  readonly keep: ReadonlySet<string>;
  readonly slow: SlowEngines | undefined;
}

/** One run of the traffic, by place in the workload; NaN where a request did not get that far or was left out. */
export interface WorldOutcome {
  readonly ttftMicros: Float64Array;
  readonly e2eMicros: Float64Array;
  readonly queueMicros: Float64Array;
  readonly arrivalMicros: Float64Array;
  readonly cachedTokens: Float64Array;
  readonly endpoint: Int32Array;
}

/** Room of a cache that is taken for unlimited; a record of an engine's is 64 bytes. */
const UNLIMITED_BLOCKS_MAX = 1 << 20;
/** So much further apart conversations begin where nobody is to meet anybody. */
const ALONE_RATE = 1 / 4_096;

export interface WorldOptions {
  /** 0 for engines without noise. */
  readonly replica?: number;
  /** Conversations come one after another, and go where they went in this run. */
  readonly alone?: WorldOutcome;
}

const AT_ONCE = { latencyMicros: 0, bytesPerSecond: Infinity } as const;

/** Runs the traffic without these causes. Same arguments, same bytes. */
export function runWorld(
  traffic: TrafficAsked,
  without: ReadonlySet<Removable>,
  options: WorldOptions = {},
): WorldOutcome {
  const setting = settingWithout(traffic, without, options.alone !== undefined);
  const candidate = without.has("policy") ? traffic.otherwise : traffic.inForce;
  const knowsCaches = without.has("index");
  const recorded = knowsCaches || without.has("policy") ? undefined : traffic.sentTo;
  const sentTo = options.alone === undefined ? recorded : endpointsOf(options.alone, setting);
  const { length } = traffic.setting.workload;
  const asked = simulationOf(setting, candidate, options.replica ?? 0);
  const simulation = new Simulation({
    ...asked,
    engines: withPrefill(asked.engines, traffic.slow?.speeds(without.has("engines")).prefill),
    ...(sentTo && { forced: forcedBy(sentTo) }),
    ...(knowsCaches && { prefixes: { kind: "engine-caches", delayMicros: 0 } as const }),
  });
  simulation.run();
  const { outcomes } = simulation;
  const column = () => new Float64Array(length).fill(NaN);
  const world = {
    ttftMicros: column(),
    e2eMicros: column(),
    queueMicros: column(),
    arrivalMicros: column(),
    cachedTokens: column(),
    endpoint: new Int32Array(length).fill(-1),
  };
  for (let row = 0; row < outcomes.length; row++) {
    if (!outcomes.isCompleted(row)) continue;
    const index = requestIndexOf(outcomes.ids[row]!);
    world.ttftMicros[index] = outcomes.ttft[row]!;
    world.e2eMicros[index] = outcomes.e2e[row]!;
    world.queueMicros[index] = outcomes.queueDelay[row]!;
    world.arrivalMicros[index] = outcomes.arrivalAt[row]!;
    world.cachedTokens[index] = outcomes.cachedTokens[row]!;
    world.endpoint[index] = outcomes.endpoint[row]!;
  }
  return world;
}

/** Each engine's prompt tokens take so many times as long; others than fitted step times have no such part. */
function withPrefill(
  engines: SimulationOptions["engines"],
  factors: readonly number[] = [],
): SimulationOptions["engines"] {
  return engines.map((one, place) => {
    const { stepTime } = one.config;
    const factor = factors[place] ?? 1;
    if (factor === 1 || stepTime.kind !== "coefficients") return one;
    const perPrefillTokenMicros = factor * stepTime.perPrefillTokenMicros;
    return { ...one, config: { ...one.config, stepTime: { ...stepTime, perPrefillTokenMicros } } };
  });
}

/** Of endpoints that joined later nobody is forced to go to one. */
function endpointsOf({ endpoint }: WorldOutcome, { endpoints }: Setting): (EndpointId | undefined)[] {
  return Array.from(endpoint, (place) => endpoints[place]?.id);
}

function forcedBy(sentTo: NonNullable<TrafficAsked["sentTo"]>): ReadonlyMap<string, EndpointId> {
  const forced = new Map<string, EndpointId>();
  sentTo.forEach((endpoint, index) => {
    if (endpoint !== undefined && endpoint !== "") forced.set(requestId(index), endpoint);
  });
  return forced;
}

function settingWithout(traffic: TrafficAsked, without: ReadonlySet<Removable>, isApart: boolean): Setting {
  const { setting, slow } = traffic;
  const workload = without.has("tenant") ? withoutTenant(traffic) : setting.workload;
  return {
    ...setting,
    workload,
    ...(without.has("cache") && {
      engine: { ...setting.engine, kvBlocks: unlimitedBlocks(setting) },
    }),
    ...(slow && { residuals: slow.speeds(without.has("engines")).residuals }),
    ...(without.has("transfer") && { transfers: { ...(setting.transfers ?? TRANSFER_DEFAULTS), ...AT_ONCE } }),
    ...(without.has("faults") && { fleetEvents: eventsWithoutFaults(setting) }),
    ...(isApart && { rateScale: setting.rateScale * ALONE_RATE }),
  };
}

/** What took an endpoint from the router, and what brings it back. */
const FAULTS: ReadonlySet<string> = new Set([
  "endpoint-left",
  "endpoint-slept",
  "endpoint-suspended",
  "endpoint-resumed",
  "endpoint-checked",
]);

/** Who did not leave does not join again. */
function eventsWithoutFaults({ endpoints, fleetEvents }: Setting): Setting["fleetEvents"] {
  const there = new Set(endpoints.map(({ id }) => id));
  return fleetEvents.filter((event) => {
    if (FAULTS.has(event.kind)) return false;
    if (event.kind !== "endpoint-joined") return true;
    const isNew = !there.has(event.endpoint.id);
    there.add(event.endpoint.id);
    return isNew;
  });
}

export function hasFaults({ fleetEvents }: Setting): boolean {
  return fleetEvents.some(({ kind, at }) => at >= 0 && FAULTS.has(kind));
}

function withoutTenant({ setting, tenant, keep }: TrafficAsked): readonly WorkloadRequest[] {
  return [...setting.workload].filter((one) => one.tenant !== tenant || keep.has(one.session));
}

function unlimitedBlocks({ workload, engine }: Setting): number {
  let blocks = 1;
  for (const { promptTokens, outputTokens } of workload)
    blocks += Math.ceil((promptTokens + outputTokens) / engine.blockTokens) + 1;
  return Math.max(engine.kvBlocks, Math.min(UNLIMITED_BLOCKS_MAX, blocks));
}
