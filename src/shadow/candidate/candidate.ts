import type { AdmissionSpec } from "#core/admission/admission-spec.ts";
import type { Decision } from "#core/input/decision.ts";
import type { Endpoint, EndpointId } from "#core/endpoint/endpoint.ts";
import type { EndpointRules } from "#core/endpoint/endpoint-rules.ts";
import type { HostMemoryPrice } from "#core/prefix/host-memory-price.ts";
import type { PolicySpec, ProfileSpec } from "#core/plugin/spec.ts";
import { createPriority, type PrioritySpec } from "#core/priority/create.ts";
import type { PathRules } from "#core/path/path-rules.ts";
import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { EngineConfig } from "#engine/config.ts";
import type { StepResiduals } from "#engine/step-drift.ts";
import { foreseeing } from "#sim/foreseeing.ts";
import type { ScalingFigures, ScalingOptions } from "#sim/setting/scaling-options.ts";
import type { SignalOptions } from "#sim/setting/signal-options.ts";
import type { TransferOptions } from "#sim/setting/transfer-options.ts";
import type { RoutersOptions } from "#sim/setting/routers-options.ts";
import { Simulation } from "#sim/simulation.ts";
import type { EngineEvent } from "#sim/fleet/engine-event.ts";
import { LoadWatch } from "#sim/result/load-watch.ts";
import type { PathCounts } from "#sim/result/path-counts.ts";
import { NO_LATENCY, type ScriptEvent, type SimulationOptions } from "#sim/setting/simulation-options.ts";
import { WorkloadArrivals } from "#sim/source/workload-arrivals.ts";
import type { WorkloadRequests } from "../recorded/packed-workload.ts";
import { replicaEngines } from "./replica.ts";
import { sizedEndpoint } from "./sized-endpoint.ts";

/** What all candidates of a question have in common. Plain data, so that it can go to a worker. */
export interface Setting {
  /** Of the router's draws. */
  readonly seed: number;
  /** Of what intervals draw: engines, how late single requests are, requests resampled; `seed` where it is left out. */
  readonly noiseSeed?: number;
  readonly workload: WorkloadRequests;
  readonly endpoints: readonly Endpoint[];
  readonly fleetEvents: readonly ScriptEvent[];
  readonly engine: EngineConfig;
  /** What the engine's calibration left to chance; replicas are all the same without it. */
  readonly residuals?: StepResiduals | undefined;
  readonly signals: SignalOptions;
  readonly blockTokens: number;
  readonly staleAfterMicros: Micros;
  /** Of the router; the usual price where it is left out. */
  readonly hostMemory?: HostMemoryPrice;
  /** What the router does with endpoints beside breakers; nothing where it is left out. */
  readonly endpointRules?: EndpointRules;
  /** From the decision until the engine has the request, and from the engine until the client has a token. */
  readonly requestMicros: Micros;
  readonly answerMicros: Micros;
  readonly rateScale: number;
  /** Between engines that compute prompts and those that answer; the usual ones where they are left out. */
  readonly transfers?: TransferOptions;
  /** Who was let in at the start; everybody where it is left out. Changes of it are among the events. */
  readonly admission?: AdmissionSpec | undefined;
  /** Requests' places in the engines' queues; their own where it is left out. */
  readonly priority?: PrioritySpec;
  readonly scaling?: ScalingOptions | undefined;
  /** One where it is left out. */
  readonly routers?: RoutersOptions;
  /** What is done about faults; the gateway's defaults where it is left out. */
  readonly rules?: PathRules;
}

/** What is otherwise than in the setting. */
export interface Scenario {
  /** As people name it: "8 endpoints". */
  readonly label: string;
  readonly endpoints?: readonly Endpoint[];
  readonly engine?: EngineConfig;
  /** Goes with the engine. */
  readonly residuals?: StepResiduals | undefined;
  readonly rateScale?: number;
  /** The number of endpoints follows the load, from those of the setting on. */
  readonly scaling?: ScalingOptions | undefined;
  /** Happen beside what the setting has. */
  readonly faults?: readonly EngineEvent[];
  /** Several, in place of one. */
  readonly routers?: RoutersOptions;
  readonly rules?: PathRules;
  /** Who is let in, in place of what was recorded; a key without a value lets everybody in. */
  readonly admission?: AdmissionSpec | undefined;
  readonly priority?: PrioritySpec;
}

export interface Candidate {
  /** Unique in a question. */
  readonly name: string;
  /** The profile; where the policies that were recorded are followed, the default one at the start. */
  readonly spec: ProfileSpec;
  /**
   * The policy at the start, where changes of policy among the setting's events are to happen as they did. Other
   * candidates are one profile from the start to the end.
   */
  readonly asRecorded?: Omit<PolicySpec, "version"> | undefined;
  /** How gauges reach its router; as the setting has it where it is left out. */
  readonly gauges?: Gauges | undefined;
  /** Undefined for the traffic, the fleet and the engine as they are. */
  readonly scenario?: Scenario | undefined;
}

/** How engines' gauges reach a router, and the age above which it goes by its own ledger instead. */
export interface Gauges {
  readonly signals: SignalOptions;
  readonly staleAfterMicros: Micros;
}

/** A candidate's outcome, a row per request of the workload in its order. NaN where a request never got that far. */
export interface CandidateOutcome {
  readonly name: string;
  readonly ttftMicros: Float64Array;
  readonly e2eMicros: Float64Array;
  /** Mean time per token after the first; NaN below two tokens. */
  readonly tpotMicros: Float64Array;
  readonly cachedTokens: Float64Array;
  /** Position in the setting's endpoints; -1 for none. */
  readonly endpoint: Int32Array;
  /** Requests in flight at the endpoint that was chosen, before this one; NaN where none was. */
  readonly inFlight: Float64Array;
  /** When it came, on the simulation's clock; NaN for never. */
  readonly arrivalMicros: Float64Array;
  readonly completed: number;
  /** What became of attempts, as the gateway's metrics count it. */
  readonly path: PathCounts;
  /** Most requests in flight at one endpoint over the mean, averaged over decisions. */
  readonly imbalance: number;
  /** When the last request was over. */
  readonly endedMicros: Micros;
  /** Where the number of endpoints followed the load. */
  readonly scaling: ScalingFigures | undefined;
}

export interface RunOptions {
  /** 0 for the engine at its usual speed, others for one drawn from its residuals. */
  readonly replica?: number;
  /** Endpoints that requests must go to, by their ids in the simulation (requestId). */
  readonly forced?: ReadonlyMap<string, EndpointId>;
  /** Sees the decision on every request's arrival. */
  readonly watch?: (requestIndex: number, decision: Decision) => void;
}

/** Runs the workload under one profile. Same arguments, same bytes, in any thread. */
export function runCandidate(setting: Setting, candidate: Candidate, options: RunOptions = {}): CandidateOutcome {
  const loads = new LoadWatch();
  const inFlight = new Float64Array(setting.workload.length).fill(NaN);
  const asked = settingOf(setting, candidate.scenario);
  const { scaling } = asked;
  const cluster = () => simulationOf(asked, candidate, options.replica ?? 0);
  const simulation = new Simulation({
    ...cluster(),
    ...(scaling && { scaling: foreseeing(scaling, cluster(), () => cluster().arrivals) }),
    ...(options.forced && { forced: options.forced }),
    observe: (input, decision) => {
      if (input.kind === "request-arrived" && decision !== undefined) {
        const request = requestIndexOf(input.request.id);
        options.watch?.(request, decision);
        if (decision.kind === "routed") inFlight[request] = loads.at(decision.endpoint);
      }
      loads.observe(input, decision);
    },
  });
  simulation.run();
  const { outcomes } = simulation;
  const column = () => new Float64Array(setting.workload.length).fill(NaN);
  const outcome = {
    name: candidate.name,
    ttftMicros: column(),
    e2eMicros: column(),
    tpotMicros: column(),
    cachedTokens: column(),
    endpoint: new Int32Array(setting.workload.length).fill(-1),
    inFlight,
    arrivalMicros: column(),
    completed: 0,
    path: simulation.paths.counts,
    imbalance: loads.imbalance,
    endedMicros: simulation.clock,
    scaling: simulation.scaling?.figures(simulation.clock),
  };
  for (let row = 0; row < outcomes.length; row++) {
    const index = requestIndexOf(outcomes.ids[row]!);
    outcome.arrivalMicros[index] = outcomes.arrivalAt[row]!;
    if (!outcomes.isCompleted(row)) continue;
    const tokens = outcomes.outputTokens[row]!;
    outcome.ttftMicros[index] = outcomes.ttft[row]!;
    outcome.e2eMicros[index] = outcomes.e2e[row]!;
    if (tokens > 1) outcome.tpotMicros[index] = (outcomes.e2e[row]! - outcomes.ttft[row]!) / (tokens - 1);
    outcome.cachedTokens[index] = outcomes.cachedTokens[row]!;
    outcome.endpoint[index] = outcomes.endpoint[row]!;
    outcome.completed++;
  }
  return outcome;
}

/** A simulation of the setting by one candidate; replica 0 is on engines without noise. */
export function simulationOf(setting: Setting, candidate: Candidate, replica: number): SimulationOptions {
  const { workload, endpoints, engine } = setting;
  const { signals, staleAfterMicros } = candidate.gauges ?? setting;
  const engineOf = replicaEngines(
    engine,
    setting.residuals,
    noiseSeedOf(setting),
    replica,
    replica === 0 ? 0 : spanOf(setting),
  );
  let joined = endpoints.length;
  return {
    router: {
      seed: setting.seed,
      ...(candidate.asRecorded ?? { profiles: { [candidate.name]: candidate.spec }, defaultProfile: candidate.name }),
      blockTokens: setting.blockTokens,
      staleAfterMicros,
      ...(setting.hostMemory && { hostMemory: setting.hostMemory }),
      ...(setting.endpointRules && { endpointRules: setting.endpointRules }),
      ...(setting.admission && { admission: setting.admission }),
    },
    ...(setting.priority && { priority: createPriority(setting.priority) }),
    ...(setting.routers && { routers: setting.routers }),
    ...(setting.rules && { rules: setting.rules }),
    ...(setting.transfers && { transfers: setting.transfers }),
    engines: endpoints.map((endpoint, i) => ({ endpoint: sizedEndpoint(endpoint, engine), config: engineOf(i) })),
    fleetEvents: policiesFor(candidate, setting).map((event) =>
      event.kind === "endpoint-joined" ? { ...event, endpoint: sizedEndpoint(event.endpoint, engine) } : event,
    ),
    engineOf: () => engineOf(joined++),
    arrivals: new WorkloadArrivals(workload, {
      seed: setting.seed,
      blockTokens: setting.blockTokens,
      timeoutMicros: Infinity,
      timeScale: 1,
      rateScale: setting.rateScale,
    }),
    signals,
    prefixes: { kind: "approximate" },
    latency: { ...NO_LATENCY, requestMicros: setting.requestMicros, answerMicros: setting.answerMicros },
    horizonMicros: Infinity,
    over: "answered",
    tokenGaps: false,
    progressMicros: MICROS_PER_SECOND,
    check: false,
  };
}

/** Under one profile from the start to the end, who is let in changes as it did all the same. */
function policiesFor(
  { name, spec, asRecorded }: Candidate,
  { fleetEvents, admission }: Setting,
): readonly ScriptEvent[] {
  if (asRecorded !== undefined) return fleetEvents;
  const isOpen = admission === undefined && !fleetEvents.some((one) => one.kind === "policy-changed" && one.admission);
  return fleetEvents.flatMap((event) => {
    if (!changesPolicy(event)) return [event];
    if (isOpen || event.kind !== "policy-changed") return [];
    return [{ ...event, profiles: { [name]: spec }, defaultProfile: name }];
  });
}

/** Whether requests may be routed otherwise from there on, for no other reason than that somebody wanted it so. */
function changesPolicy({ kind }: ScriptEvent): boolean {
  return kind === "policy-changed" || kind === "profile-changed" || kind.startsWith("rollout-");
}

/** The setting as a scenario has it. What became of another fleet is not known, so nothing but its policies does. */
export function settingOf(setting: Setting, scenario: Scenario | undefined): Setting {
  if (scenario === undefined) return setting;
  const { endpoints, engine, residuals, rateScale, faults, routers, scaling, rules, priority } = scenario;
  const happened = endpoints === undefined ? setting.fleetEvents : setting.fleetEvents.filter(changesPolicy);
  return {
    ...setting,
    fleetEvents: faults === undefined ? happened : [...happened, ...faults],
    ...(endpoints && { endpoints }),
    ...(engine && { engine, residuals }),
    ...(rateScale !== undefined && { rateScale }),
    ...(routers && { routers }),
    ...(rules && { rules }),
    ...(scaling && { scaling }),
    ...(priority && { priority }),
    ...("admission" in scenario && { admission: scenario.admission }),
  };
}

const REQUEST_PREFIX = "request_";
/** How WorkloadArrivals names the request of an index. */
export function requestId(index: number): string {
  return `${REQUEST_PREFIX}${index}`;
}

export function requestIndexOf(id: string): number {
  return Number(id.slice(REQUEST_PREFIX.length));
}

export function noiseSeedOf({ seed, noiseSeed = seed }: Setting): number {
  return noiseSeed;
}

/** From the start to the last arrival that is known beforehand. */
export function spanOf({ workload, rateScale }: Setting): Micros {
  let span = 0;
  for (const { arrivalMicros } of workload) if (arrivalMicros > span) span = arrivalMicros;
  return span / rateScale;
}
