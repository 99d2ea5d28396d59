import { residualsFor } from "#shadow/recorded/engine-origin.ts";
import { loadCalibratedEngine } from "#config/engine-file.ts";
import { gaugeMillisOf, loadProfile } from "#config/profile-file.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/units.ts";
import type { StepResiduals } from "#engine/step-drift.ts";
import type { Candidate, Scenario, Setting } from "#shadow/question/candidate.ts";
import { PackedWorkload, type Workload, WorkloadPacker } from "#shadow/recorded/packed-workload.ts";
import type { Observed, RecordedRun } from "#shadow/recorded/recorded-run.ts";
import { inForceOf } from "#shadow/recorded/in-force.ts";
import { recordedSetting } from "#shadow/recorded/recorded-setting.ts";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import { openWorkload } from "#trace/import/open-workload.ts";
import { IMPORT_DEFAULTS } from "#trace/import/import-options.ts";
import { TurnCap } from "#trace/transform/cap-workload.ts";
import { Tally } from "#trace/transform/tally.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { givenSizes, sizedEngine } from "../calibrate/engine-sizes.ts";
import { CommandFailure } from "#serve/command-failure.ts";
import { isRecorded, readRecordedTrace } from "../trace/recorded-trace.ts";
import { scalePolicyOf, scalingOf } from "../autoscale-flags.ts";
import { colocatedSpec, pdSpec, replicasOf, transfersOf, withRoles } from "../architecture-flags.ts";
import { faultsOf, lostText } from "../lost-endpoint.ts";
import { equalEndpoints } from "../equal-endpoints.ts";
import { hedgeRules } from "../hedge-flags.ts";
import { routersOf, routersText } from "../router-flags.ts";
import { withPlainErrors } from "../trace/trace-source.ts";
import { type ChosenEngine, engineOfRun, engineOfWorkload } from "./what-if-engine.ts";
import type { TrafficFlags, WhatIfFlags } from "./what-if-flags.ts";

/** A question's traffic, wherever it comes from. */
export interface Traffic {
  readonly setting: Setting;
  /** In the workload's order; undefined where nothing that happened can be compared. */
  readonly observed: readonly Observed[] | undefined;
  /** Of a trace: the requests' ids in it, in the workload's order. */
  readonly requestIds?: readonly string[];
  readonly inForce: Candidate;
  /** Values of --endpoints and --rate-scale that are not how the traffic came. */
  readonly otherEndpoints: readonly number[];
  readonly otherRates: readonly number[];
  readonly engine: ChosenEngine;
  /** Requests that are not in the workload, by reason. */
  readonly left: Readonly<Record<string, number>>;
  readonly notes: readonly string[];
}

const ENDPOINTS_DEFAULT = 4;
const STALE_AFTER_MILLIS = 5_000;
/** A reading older than so many intervals is stale, where those are long. */
const STALE_AFTER_INTERVALS = 3;

/** Reads a trace, or a workload that was recorded elsewhere. Throws CommandFailure and ConfigError. */
export async function trafficOf(path: string, flags: TrafficFlags): Promise<Traffic> {
  const traffic = (await isRecorded(path)) ? await recorded(path, flags) : await withPlainErrors(foreign(path, flags));
  if (traffic.setting.workload.length === 0)
    throw new CommandFailure([`${path} has no request that can be simulated`, ...notesOf(traffic)].join("\n  "));
  return flags.capped === undefined ? traffic : capped(traffic, flags.capped);
}

/** Notes printed beside an answer, a line each. */
export function notesOf({ left, notes }: Traffic): string[] {
  return [...Object.entries(left).map(([reason, count]) => `${count} left out: ${reason}`), ...notes];
}

async function recorded(path: string, flags: TrafficFlags): Promise<Traffic> {
  const { run, notes: damage } = await readRecordedTrace(path, flags.conversations);
  const base = engineOfRun(run, flags);
  const { engine, notes } = sizedEngine(base.engine, run, flags, false);
  const kept = firstArrived(run.workload, flags.limit);
  const left = { ...run.left, ...beyondLimit(run.workload.length - kept.length) };
  const workload = kept.map((request, index) => ({ ...request, index }));
  const stated = residualsOf(base.residuals, flags);
  // What --step-error states is all that is asked for.
  const { residuals, notes: origin } =
    flags.stepError === undefined ? residualsFor(stated, base.source, run.header) : { residuals: stated, notes: [] };
  return {
    setting: {
      ...recordedSetting({ ...run, workload }, { ...outsideEngines(flags), engine, residuals }),
      transfers: transfersOf(flags),
    },
    observed: kept.map(({ index }) => run.observed[index]!),
    ...(run.requestIds && { requestIds: kept.map(({ index }) => run.requestIds![index]!) }),
    inForce: flags.inForce === undefined ? recordedProfile(path, run) : namedProfile(flags.inForce),
    otherEndpoints: flags.endpoints,
    otherRates: flags.rateScale,
    engine: base,
    left,
    notes: [...damage, ...base.notes, ...notes, ...origin],
  };
}

async function foreign(path: string, flags: TrafficFlags): Promise<Traffic> {
  const base = engineOfWorkload(flags);
  const engine = { ...base.engine, ...givenSizes(flags) };
  const { report, requests } = await openWorkload(path, { ...IMPORT_DEFAULTS, seed: flags.seed });
  const packer = new WorkloadPacker();
  let more = 0;
  for await (const request of requests) {
    if (packer.length < flags.limit) packer.push(request);
    else more++;
  }
  const [endpoints = ENDPOINTS_DEFAULT, ...otherEndpoints] = flags.endpoints;
  const [rateScale = 1, ...otherRates] = flags.rateScale;
  const left = { ...Object.fromEntries(report.refused), ...beyondLimit(more) };
  const { scrapeMicros, ...delays } = outsideEngines(flags);
  return {
    observed: undefined,
    inForce: namedProfile(flags.inForce ?? "gnomon"),
    setting: {
      workload: new PackedWorkload(packer.columns()),
      endpoints: equalEndpoints(endpoints),
      fleetEvents: [],
      engine,
      residuals: residualsOf(base.residuals, flags),
      signals: scrapedEvery(scrapeMicros),
      ...delays,
      blockTokens: engine.blockTokens,
      staleAfterMicros: STALE_AFTER_MILLIS * MICROS_PER_MILLI,
      seed: flags.seed,
      transfers: transfersOf(flags),
      rateScale,
    },
    otherEndpoints,
    otherRates,
    engine: base,
    left,
    notes: base.notes,
  };
}

function recordedProfile(path: string, { header, fleetEvents }: RecordedRun): Candidate {
  try {
    return inForceOf(header, fleetEvents);
  } catch (error) {
    throw new CommandFailure(`${path} ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** What lies between the router and the engines. */
function outsideEngines({ scrapeInterval, requestDelay, answerDelay }: TrafficFlags) {
  return {
    scrapeMicros: Math.round(scrapeInterval * MICROS_PER_MILLI),
    requestMicros: requestDelay,
    answerMicros: answerDelay,
  };
}

/** Conversations stand together in a recorded workload: its first rows are not the first to arrive. */
function firstArrived(workload: readonly WorkloadRequest[], limit: number): readonly WorkloadRequest[] {
  if (workload.length <= limit) return workload;
  const arrivals = Float64Array.from(workload, ({ arrivalMicros }) => arrivalMicros).sort();
  const last = arrivals[limit - 1]!;
  let room = limit;
  return workload.filter(({ arrivalMicros }) => arrivalMicros <= last && room-- > 0);
}

function beyondLimit(count: number): Readonly<Record<string, number>> {
  return count === 0 ? {} : { "beyond --limit": count };
}

/** Less traffic is another experiment: what happened is no evidence of the model's error in it. */
async function capped(traffic: Traffic, turnsMax: number): Promise<Traffic> {
  const cap = new TurnCap(turnsMax);
  const { setting } = traffic;
  for (const request of setting.workload) cap.add(request);
  const tally = new Tally();
  const workload = await Array.fromAsync(cap.cap(inTurn(setting.workload), tally));
  const left = { ...traffic.left, ...Object.fromEntries(tally.entries()) };
  return { ...traffic, setting: { ...setting, workload }, observed: undefined, left };
}

async function* inTurn(requests: Workload): AsyncGenerator<WorkloadRequest> {
  yield* requests;
}

/** Profiles, each as things were and in every scenario that flags ask about, one change at a time. */
export function candidatesOf(traffic: Traffic, flags: WhatIfFlags): Candidate[] {
  const profiles = flags.profile.map(namedProfile);
  const others = profiles.filter(({ name }) => name !== traffic.inForce.name);
  const engines = flags.engine.slice(1).map((name): Scenario => {
    const { engine, residuals } = loadCalibratedEngine(name);
    return { label: `engine ${name}`, engine, residuals: residualsOf(residuals, flags) };
  });
  const fleets = traffic.otherEndpoints.map((count): Scenario => {
    return { label: `${count} ${count === 1 ? "endpoint" : "endpoints"}`, endpoints: equalEndpoints(count) };
  });
  const rates = traffic.otherRates.map((rateScale): Scenario => ({ label: `${rateScale} x the rate`, rateScale }));
  const gateways = flags.routers.flatMap((count): Scenario[] => {
    const routers = routersOf(count, flags);
    return routers === undefined ? [] : [{ label: routersText(count, flags), routers }];
  });
  const hedged = flags.hedgeAfter.map((millis): Scenario => {
    return { label: `hedged after ${millis} ms`, rules: hedgeRules(millis, flags.hedgeShare) };
  });
  const lost = lossScenario(traffic.setting, flags);
  const autoscaled = flags.autoscale.map((text) => autoscaleScenario(traffic.setting, text, flags));
  const gauges = flags.signals === "own" ? gaugeScenarios(flags) : [];
  const timed = gauges.flatMap(({ scenario, names }) =>
    [traffic.inForce, ...others.filter(({ name }) => names.has(name))].map((one) => {
      return { ...one, name: `${one.name}, ${scenario.label}`, scenario };
    }),
  );
  const scaled = [...lost, ...gateways, ...hedged, ...autoscaled, ...fleets, ...rates, ...engines].flatMap((scenario) =>
    [traffic.inForce, ...others].map((one) => ({ ...one, name: `${one.name}, ${scenario.label}`, scenario })),
  );
  const otherwise = architectureCandidates(traffic, [traffic.inForce, ...others], flags);
  return [...new Map([...others, ...otherwise, ...timed, ...scaled].map((one) => [one.name, one])).values()];
}

/** The same profiles where prompts are computed at other endpoints than those that answer, or none is. */
function architectureCandidates({ setting }: Traffic, profiles: readonly Candidate[], flags: WhatIfFlags): Candidate[] {
  const { prefill, decode } = replicasOf(flags, setting.endpoints.length);
  const { architecture } = flags;
  if (architecture === undefined) return [];
  const isShared = architecture === "pd";
  const count = isShared ? prefill + decode : setting.endpoints.length;
  const endpoints = count <= setting.endpoints.length ? setting.endpoints.slice(0, count) : equalEndpoints(count);
  const scenario: Scenario = {
    label: isShared ? `${prefill} prefill and ${decode} decode` : "colocated",
    endpoints: isShared ? withRoles(endpoints, prefill) : endpoints,
  };
  return profiles.map((one) => ({
    name: `${one.name}, ${scenario.label}`,
    spec: isShared ? pdSpec(one.spec, flags) : colocatedSpec(one.spec),
    scenario,
  }));
}

/** A fleet that follows the load; it begins as it is, or within the bounds. */
function autoscaleScenario({ endpoints }: Setting, text: string, flags: WhatIfFlags): Scenario {
  const section = scalePolicyOf(text, "--autoscale");
  const most = flags.autoscalerMax ?? section.maxReplicas ?? endpoints.length;
  const count = Math.max(flags.autoscalerMin ?? section.minReplicas ?? 1, Math.min(most, endpoints.length));
  const scaling = scalingOf(section, flags, count);
  return {
    label: `autoscaled, ${text}`,
    scaling,
    endpoints: count <= endpoints.length ? endpoints.slice(0, count) : equalEndpoints(count),
  };
}

/** The fleet as it is, with engines that are killed; none where none is asked for. */
function lossScenario({ endpoints }: Setting, { lose }: WhatIfFlags): Scenario[] {
  if (lose.length === 0) return [];
  const ids = endpoints.map(({ id }) => id);
  return [{ label: lostText(lose), faults: faultsOf(lose, ids) }];
}

/** Other intervals than --scrape-interval at which routers read gauges by default, with the profiles asked about. */
function gaugeScenarios(flags: WhatIfFlags): { readonly scenario: Scenario; readonly names: ReadonlySet<string> }[] {
  const profiles = flags.profile.map(loadProfile);
  const intervals = new Set(profiles.map(gaugeMillisOf).filter((millis) => millis !== flags.scrapeInterval));
  return [...intervals].map((millis) => {
    const scrapeMicros = Math.round(millis * MICROS_PER_MILLI);
    return {
      scenario: {
        label: `gauges every ${millis} ms`,
        signals: scrapedEvery(scrapeMicros),
        staleAfterMicros: Math.max(STALE_AFTER_MILLIS * MICROS_PER_MILLI, STALE_AFTER_INTERVALS * scrapeMicros),
      },
      names: new Set(profiles.filter((profile) => gaugeMillisOf(profile) === millis).map(({ name }) => name)),
    };
  });
}

/** Those of the engine's file, else what --step-error states. */
function residualsOf(calibrated: StepResiduals | undefined, { stepError }: TrafficFlags): StepResiduals | undefined {
  if (stepError === undefined) return calibrated;
  return { windowMicros: MICROS_PER_SECOND, windows: [[0]], levelError: stepError, delayError: 0, prefillError: 0 };
}

function namedProfile(nameOrPath: string): Candidate {
  const { name, spec } = loadProfile(nameOrPath);
  return { name, spec };
}
