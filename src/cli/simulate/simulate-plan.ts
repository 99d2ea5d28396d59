import { ConfigError } from "#config/config-error.ts";
import type { NamedProfile } from "#config/profile-file.ts";
import { type ProfileSignals, signalsOfProfile, staleAfterMillis } from "#config/profile-signals.ts";
import { ADMIT_ALL } from "#core/admission/admission-spec.ts";
import { numberedIds } from "#core/endpoint/numbered-ids.ts";
import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/base/units.ts";
import { type EngineConfig, roomTokens } from "#engine/config.ts";
import type { EngineSpec } from "#sim/fleet/engine-fleet.ts";
import type { SignalOptions } from "#sim/setting/signal-options.ts";
import type { StagedOptions } from "#sim/path/stage-performer.ts";
import type { PrefixSignal } from "#sim/setting/simulation-options.ts";
import { colocatedSpec, pdSpec, replicasOf, transfersOf, withRoles } from "../flag/architecture-flags.ts";
import { scalingOf } from "../flag/autoscale-flags.ts";
import { faultsOf } from "../flag/lost-endpoint.ts";
import { stageRules } from "../flag/stage-flags.ts";
import { routersOf } from "../flag/router-flags.ts";
import { stagePlan } from "./stage-options.ts";
import { engineOf } from "./simulate-engine.ts";
import { INSTANCES_DEFAULT, type SimulateFlags } from "./simulate-flags.ts";
import type { SimulatedRules } from "./simulated-rules.ts";
import { policiesOf } from "./simulate-policies.ts";

/** Everything about a simulation but its requests. */
export type ClusterPlan = Omit<StagedOptions, "arrivals"> & {
  readonly profile: NamedProfile;
  /** How often and how late gauges are read where they are scraped. */
  readonly gauges: ProfileSignals;
};

/** Reads profile, engines and signals from flags and files; throws ConfigError with what is wrong. `set`: as of --set. */
export function clusterPlan(flags: SimulateFlags, set?: SimulatedRules): ClusterPlan {
  const policies = policiesOf(flags);
  const profile = architected(policies.profile, flags);
  const config = engineOf(flags, policies);
  const staged = stagePlan(flags);
  const engines = staged?.engines ?? instancesOf(flags, config);
  const routers = routersOf(flags.routers, flags);
  const gauges = gaugesFor(profile, flags);
  const { priority } = policies;
  const given = priority === undefined ? policies.admission : { ...(policies.admission ?? ADMIT_ALL), priority };
  if (given !== undefined && set?.router.admission !== undefined) {
    throw new ConfigError(["--set: expected nothing of admission beside an admission or priority policy, got both"]);
  }
  const admission = given ?? set?.router.admission;
  const rules = stageRules(flags, set?.rules);
  return {
    profile,
    gauges,
    router: {
      seed: flags.seed,
      profiles: { [profile.name]: profile.spec },
      defaultProfile: profile.name,
      ...set?.router,
      ...(admission !== undefined && { admission }),
      blockTokens: config.blockTokens,
      staleAfterMicros: (flags.staleAfter ?? staleAfterMillis(gauges.intervalMillis)) * MICROS_PER_MILLI,
    },
    ...(routers && { routers }),
    ...(rules && { rules }),
    ...(policies.autoscale && {
      scaling: scalingOf(policies.autoscale, flags, flags.numInstances ?? INSTANCES_DEFAULT),
    }),
    engines,
    ...(staged && { stages: [staged.stage] }),
    ...(flags.lose.length > 0 && {
      fleetEvents: faultsOf(
        flags.lose,
        engines.map(({ endpoint }) => endpoint.id),
      ),
    }),
    signals: signalOptions(flags, gauges),
    prefixes: prefixesOf(flags, config),
    ...(looksInto(profile) && { engineCaches: { delayMicros: 0 } }),
    latency: {
      admissionMicros: flags.admissionLatency,
      routingMicros: flags.routingLatency,
      requestMicros: flags.requestLatency,
      answerMicros: flags.answerLatency,
      perOutputTokenMicros: 0,
      afterLastTokenMicros: 0,
    },
    transfers: transfersOf(flags),
    horizonMicros: flags.horizon === undefined ? Infinity : flags.horizon * MICROS_PER_SECOND,
    progressMicros: MICROS_PER_SECOND,
    over: "answered",
    tokenGaps: flags.tokenGaps,
    check: flags.check,
  };
}

/** Whether some scorer of the profile looks into the engines. */
function looksInto({ spec }: NamedProfile): boolean {
  return spec.scorers.some(({ plugin }) => plugin === "prefix-oracle");
}

/** The profile as the architecture has it; without one, as it is. */
function architected(profile: NamedProfile, flags: SimulateFlags): NamedProfile {
  if (flags.architecture === undefined && flags.colocateBelowTokens === undefined) return profile;
  const spec = flags.architecture === "colocated" ? colocatedSpec(profile.spec) : pdSpec(profile.spec, flags);
  return { ...profile, spec };
}

function instancesOf(flags: SimulateFlags, config: EngineConfig): EngineSpec[] {
  const { architecture, numInstances } = flags;
  const { prefill, decode } = replicasOf(flags, numInstances ?? INSTANCES_DEFAULT);
  if (architecture !== "pd") return instances(numInstances ?? INSTANCES_DEFAULT, config);
  if (numInstances !== undefined && prefill + decode !== numInstances)
    throw new ConfigError([
      `--num-instances: expected the ${prefill + decode} of --prefill-replicas and --decode-replicas, got ${numInstances}`,
    ]);
  const specs = instances(prefill + decode, config);
  const endpoints = withRoles(
    specs.map(({ endpoint }) => endpoint),
    prefill,
  );
  return specs.map((spec, i) => ({ ...spec, endpoint: endpoints[i]! }));
}

function instances(count: number, config: EngineConfig): EngineSpec[] {
  return numberedIds("instance", count).map((id) => ({
    config,
    endpoint: {
      id,
      models: [],
      labels: {},
      kvCapacityTokens: config.dataParallel * roomTokens(config),
      concurrencyMax: config.dataParallel * config.sequencesMax,
    },
  }));
}

/** What the profile is made for, and what flags state otherwise. */
function gaugesFor(profile: NamedProfile, { scrapeInterval, scrapeDelay }: SimulateFlags): ProfileSignals {
  const stated = signalsOfProfile(profile);
  if (scrapeInterval === undefined && scrapeDelay === undefined) return stated;
  const { intervalMillis, delayMillis } = stated;
  const source = scrapeInterval === undefined ? `${stated.source}; --scrape-delay` : "--scrape-interval";
  return { intervalMillis: scrapeInterval ?? intervalMillis, delayMillis: scrapeDelay ?? delayMillis, source };
}

function signalOptions(flags: SimulateFlags, { intervalMillis, delayMillis }: ProfileSignals): SignalOptions {
  const intervalMicros = Math.round(intervalMillis * MICROS_PER_MILLI);
  switch (flags.signals) {
    case "oracle":
      return { mode: "oracle" };
    case "at-decision":
      return { mode: "at-decision", intervalMicros };
    case "scrape":
      return {
        mode: "scrape",
        intervalMicros,
        phase: flags.scrapePhase,
        delayMicros: Math.round(delayMillis * MICROS_PER_MILLI),
        lossShare: flags.scrapeLoss,
      };
  }
}

function prefixesOf(flags: SimulateFlags, { dataParallel }: EngineConfig): PrefixSignal {
  if (dataParallel > 1 && flags.prefixIndex !== "approximate") {
    throw new ConfigError([
      `--prefix-index: expected approximate for engines of ${dataParallel} data-parallel ranks, got ` +
        `${flags.prefixIndex}: nobody knows which of their caches a request will go to`,
    ]);
  }
  if (flags.routers > 1 && flags.prefixIndex !== "approximate") {
    throw new ConfigError([
      `--prefix-index: expected approximate with --routers ${flags.routers}, got ${flags.prefixIndex}: ` +
        "each of several routers knows prefixes from decisions alone",
    ]);
  }
  switch (flags.prefixIndex) {
    case "approximate":
      return { kind: "approximate" };
    case "oracle":
      return { kind: "engine-caches", delayMicros: 0 };
    case "events":
      return { kind: "kv-events", delayMicros: flags.cacheSignalDelay * MICROS_PER_MILLI };
    case "copies":
      return { kind: "engine-caches", delayMicros: flags.cacheSignalDelay * MICROS_PER_MILLI };
  }
}
