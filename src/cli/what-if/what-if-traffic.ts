import { evidenceOf } from "#shadow/calibrate/evidence.ts";
import { seenSpeed } from "#shadow/calibrate/seen-speed.ts";
import { residualsFor } from "#shadow/recorded/engine-origin.ts";
import { loadCalibratedEngine } from "#config/engine-file.ts";
import { loadProfile, type NamedProfile } from "#config/profile-file.ts";
import { OWN_SIGNALS, type ProfileSignals, signalsOfProfile } from "#config/profile-signals.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/base/units.ts";
import { answerRoom } from "#engine/answer-room.ts";
import { roomTokens } from "#engine/config.ts";
import type { StepResiduals } from "#engine/step-drift.ts";
import type { Candidate, Scenario, Setting } from "#shadow/candidate/candidate.ts";
import { PackedWorkload, type WorkloadRequests, WorkloadPacker } from "#shadow/recorded/packed-workload.ts";
import type { RecordedRun } from "#shadow/recorded/recorded-run.ts";
import type { Observed } from "#shadow/recorded/observed.ts";
import { routerOfHeader } from "#shadow/reproduce/decided-run.ts";
import { inForceOf } from "#shadow/candidate/in-force.ts";
import { recordedSetting } from "#shadow/candidate/recorded-setting.ts";
import { openWorkload } from "#trace/import/open-workload.ts";
import { IMPORT_DEFAULTS } from "#trace/import/import-options.ts";
import { TurnCap } from "#trace/transform/cap-workload.ts";
import { Tally } from "#trace/transform/tally.ts";
import { firstPromptTokens, type WorkloadRequest } from "#trace/workload-request.ts";
import { givenSizes, sizedEngine } from "../calibrate/engine-sizes.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";
import { isRecorded, readRecordedTrace } from "../trace/recorded-trace.ts";
import { scalePolicyOf, scalingOf } from "../flag/autoscale-flags.ts";
import { colocatedSpec, pdSpec, replicasOf, transfersOf, withRoles } from "../flag/architecture-flags.ts";
import { profileGauges, profileCandidate, signalsNotes } from "../flag/profile-gauges.ts";
import { faultsOf, lostText } from "../flag/lost-endpoint.ts";
import { equalEndpoints } from "../flag/equal-endpoints.ts";
import { askedStageRules } from "../flag/stage-flags.ts";
import { routersOf, routersText } from "../flag/router-flags.ts";
import { withPlainErrors } from "../trace/trace-source.ts";
import { reproducedPolicy } from "../reproduce/reproduced-policy.ts";
import type { LongWork } from "../long-work/long-work.ts";
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
  /** Whose decisions the trace has, where they are not gnomon's: `inForce` is the policy that explains them best. */
  readonly router?: string;
  /** Of the profile in force: as the trace had them, or as it is made for. */
  readonly signals: ProfileSignals;
  /** Values of --endpoints and --rate-scale that are not how the traffic came. */
  readonly otherEndpoints: readonly number[];
  readonly otherRates: readonly number[];
  readonly engine: ChosenEngine;
  /** Requests that are not in the workload, by reason. */
  readonly left: Readonly<Record<string, number>>;
  readonly notes: readonly string[];
}

const ENDPOINTS_DEFAULT = 4;

/** Reads a trace, or a workload that was recorded elsewhere. Throws CommandFailure and ConfigError. */
export async function trafficOf(path: string, flags: TrafficFlags, work?: LongWork): Promise<Traffic> {
  const traffic = await anyTrafficOf(path, flags, work);
  if (traffic.setting.workload.length === 0)
    throw new CommandFailure([`${path} has no request that can be simulated`, ...notesOf(traffic)].join("\n  "));
  return flags.capped === undefined ? traffic : capped(traffic, flags.capped);
}

/** The same, also where no request of it can be simulated. */
export async function anyTrafficOf(path: string, flags: TrafficFlags, work?: LongWork): Promise<Traffic> {
  return (await isRecorded(path)) ? recorded(path, flags, work) : withPlainErrors(foreign(path, flags));
}

/** Notes printed beside an answer, a line each. */
export function notesOf({ left, notes, setting }: Traffic): string[] {
  return [
    ...Object.entries(left).map(([reason, count]) => `${count} left out: ${reason}`),
    ...tooLarge(setting),
    ...notes,
  ];
}

/** What is simulated as refused, and in no figure of times. */
function tooLarge({ workload, engine }: Setting): string[] {
  let count = 0;
  for (const request of workload)
    if (typeof answerRoom(engine, firstPromptTokens(request), request.outputTokens) === "string") count++;
  if (count === 0) return [];
  const most = Math.min(engine.modelTokensMax, roomTokens(engine));
  return [
    `${count} of ${workload.length} requests are too long for the engine, which takes ${most} tokens, and get no answer; ` +
      "--engine, --kv-blocks or --model-tokens-max asks about a larger one",
  ];
}

async function recorded(path: string, flags: TrafficFlags, work?: LongWork): Promise<Traffic> {
  const { run, notes: damage } = await readRecordedTrace(path, flags.conversations);
  const base = await engineOfRun(run, flags, work);
  const { engine, notes } = sizedEngine(base.engine, run, flags, false);
  const kept = firstArrived(run.workload, flags.limit);
  const left = { ...run.left, ...beyondLimit(run.workload.length - kept.length) };
  const workload = kept.map((request, index) => ({ ...request, index }));
  const stated = residualsOf(base.residuals, flags);
  // What --step-error states is all that is asked for.
  const seen = () =>
    flags.speed !== "engine" && stated ? seenSpeed(evidenceOf(run, engine.blockTokens), engine) : undefined;
  const { residuals, notes: origin } =
    flags.stepError === undefined
      ? residualsFor(stated, base.source, run.header, seen)
      : { residuals: stated, notes: [] };
  const signals = signalsFor(flags, recordedSignals(run));
  const router = routerOfHeader(run.header);
  const { candidate: inForce, notes: policy } = await inForceFor(path, run, flags, work);
  const { requestDelay: requestMicros, answerDelay: answerMicros } = flags;
  const setting = recordedSetting(
    { ...run, workload },
    { engine, residuals, ...profileGauges(signals), requestMicros, answerMicros },
  );
  return {
    setting: { ...setting, noiseSeed: flags.seed, transfers: transfersOf(flags) },
    signals,
    observed: kept.map(({ index }) => run.observed[index]!),
    ...(run.requestIds && { requestIds: kept.map(({ index }) => run.requestIds![index]!) }),
    inForce,
    ...(router !== undefined && { router }),
    otherEndpoints: flags.endpoints,
    otherRates: flags.rateScale,
    engine: base,
    left,
    notes: [...damage, ...policy, ...base.notes, ...notes, ...origin],
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
  const inForce = loadProfile(flags.inForce ?? "gnomon");
  const signals = signalsFor(flags, signalsOfProfile(inForce));
  return {
    observed: undefined,
    inForce: unsignalled(inForce),
    signals,
    setting: {
      workload: new PackedWorkload(packer.columns()),
      endpoints: equalEndpoints(endpoints),
      fleetEvents: [],
      engine,
      residuals: residualsOf(base.residuals, flags),
      ...profileGauges(signals),
      requestMicros: flags.requestDelay,
      answerMicros: flags.answerDelay,
      blockTokens: engine.blockTokens,
      seed: flags.seed,
      transfers: transfersOf(flags),
      rateScale,
    },
    otherEndpoints,
    otherRates,
    engine: base,
    left,
    notes: [...report.adjustedLines(), ...base.notes],
  };
}

/** The profile in force, or what explains the decisions of another router. */
async function inForceFor(
  path: string,
  run: RecordedRun,
  { inForce }: TrafficFlags,
  work: LongWork | undefined,
): Promise<{ readonly candidate: Candidate; readonly notes: readonly string[] }> {
  if (inForce !== undefined) return { candidate: unsignalled(loadProfile(inForce)), notes: [] };
  const router = routerOfHeader(run.header);
  if (router === undefined) return { candidate: recordedProfile(path, run), notes: [] };
  return reproducedPolicy(path, router, work);
}

function recordedProfile(path: string, { header, fleetEvents }: RecordedRun): Candidate {
  try {
    return inForceOf(header, fleetEvents);
  } catch (error) {
    throw new CommandFailure(`${path} ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Those that --scrape-interval states, else others. */
function signalsFor({ scrapeInterval }: TrafficFlags, otherwise: ProfileSignals): ProfileSignals {
  if (scrapeInterval === undefined) return otherwise;
  return { ...otherwise, intervalMillis: scrapeInterval, source: "--scrape-interval" };
}

/** As a trace shows them; where it has no scrapes, gnomon's own. */
function recordedSignals({ scrapeMicros }: RecordedRun): ProfileSignals {
  if (scrapeMicros === undefined) return OWN_SIGNALS;
  return { ...OWN_SIGNALS, intervalMillis: scrapeMicros / MICROS_PER_MILLI, source: "as the trace shows" };
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

async function* inTurn(requests: WorkloadRequests): AsyncGenerator<WorkloadRequest> {
  yield* requests;
}

/** Profiles, each as things were and in every scenario that flags ask about, one change at a time. */
export function candidatesOf(traffic: Traffic, flags: WhatIfFlags): Candidate[] {
  const others = profilesAsked(traffic, flags).map(({ candidate }) => candidate);
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
  const staged: readonly Scenario[] = askedStageRules(flags);
  const lost = lossScenario(traffic.setting, flags);
  const autoscaled = flags.autoscale.map((text) => autoscaleScenario(traffic.setting, text, flags));
  const scaled = [...lost, ...gateways, ...staged, ...autoscaled, ...fleets, ...rates, ...engines].flatMap((scenario) =>
    [traffic.inForce, ...others].map((one) => ({ ...one, name: `${one.name}, ${scenario.label}`, scenario })),
  );
  const otherwise = architectureCandidates(traffic, [traffic.inForce, ...others], flags);
  return [...new Map([...others, ...otherwise, ...scaled].map((one) => [one.name, one])).values()];
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
    ...one,
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

/**
 * Profiles to ask about, each with the signals that it is made for, unless flags state that all have the same: those of
 * the profile in force, which are the setting's.
 */
function profilesAsked(
  { inForce, signals }: Traffic,
  { profile, scrapeInterval, signals: kind }: Pick<WhatIfFlags, "profile" | "scrapeInterval" | "signals">,
): { readonly candidate: Candidate; readonly signals: ProfileSignals }[] {
  const isShared = kind === "same" || scrapeInterval !== undefined;
  return profile
    .map(loadProfile)
    .filter(({ name }) => name !== inForce.name)
    .map((one) =>
      isShared
        ? { candidate: unsignalled(one), signals }
        : { candidate: profileCandidate(one), signals: signalsOfProfile(one) },
    );
}

/** Which gauges the answer's simulations read, a line each. */
export function signalsUsed(traffic: Traffic, flags: WhatIfFlags): string[] {
  const asked = profilesAsked(traffic, flags).map(({ candidate, signals }) => ({ name: candidate.name, signals }));
  return signalsNotes([{ name: traffic.inForce.name, signals: traffic.signals }, ...asked]);
}

/** Those of the engine's file, else what --step-error states. */
function residualsOf(calibrated: StepResiduals | undefined, { stepError }: TrafficFlags): StepResiduals | undefined {
  if (stepError === undefined) return calibrated;
  return { windowMicros: MICROS_PER_SECOND, windows: [[0]], levelError: stepError, delayError: 0, prefillError: 0 };
}

/** A profile under the setting's own signals. */
function unsignalled({ name, spec }: NamedProfile): Candidate {
  return { name, spec };
}
