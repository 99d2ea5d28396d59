import { admissionSpec } from "#config/admission-spec.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import type { Config } from "#config/schema.ts";
import { nowMicros } from "#live/base/clock.ts";
import type { Gateway, GatewayOptions } from "#live/gateway/gateway.ts";
import type { RouterTap } from "#live/base/router-tap.ts";
import type { FaultEvent, FaultLog } from "#live/log/fault-log.ts";
import type { PolicyDesk, PolicyOutcome } from "#live/admin/policy-desk.ts";
import { profileChooser } from "./profile-chooser.ts";
import { type Scraped, tooSlowFor } from "./live-scrape.ts";
import { LiveWorkloads } from "./live-workloads.ts";
import type { ServePlan } from "../plan/serve-plan.ts";
import { documentDesk } from "./document-desk.ts";
import { FileSource } from "./file-source.ts";
import type { SharedStore } from "../state/shared-store.ts";
import type { StateFolder } from "../state/state-folder.ts";
import { ORDER_ANSWER_MILLIS, unkeptOf } from "../state/unkept.ts";
import { type Policy, policyOf } from "./policy.ts";
import { type PolicyChange, PolicyKeeper, type PolicyKeeperOptions, type PolicyPast } from "./policy-keeper.ts";
import { PolicyShare } from "./policy-share.ts";
import { policiesText } from "./saved-policies.ts";
import type { PolicyProposal, PolicySource } from "./policy-source.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface LivePolicyOptions extends Scraped {
  readonly plan: ServePlan;
  readonly environment: Environment;
  readonly tap: RouterTap;
  readonly report: FaultLog["report"];
  /** Undefined before there is one. */
  readonly gateway: () => Gateway | undefined;
  /** What was in force before, where something was kept. */
  readonly past: PolicyPast | undefined;
  readonly folder: StateFolder | undefined;
  /** What replicas share; undefined where there is none beside this gateway. */
  readonly store: SharedStore | undefined;
  /** What stands in the way of a policy that is well by itself. */
  readonly objections: NonNullable<PolicyKeeperOptions["objections"]>;
  /** Whatever stands in the way gives way. */
  readonly giveWay: NonNullable<PolicyKeeperOptions["giveWay"]>;
  /** The configuration was read again: rollouts that it has are followed. */
  readonly reread: (config: Config) => void;
}

/** The policy of a running gateway: what requests are chosen and limited by, and all that may change it. */
export interface LivePolicy {
  readonly desk: PolicyDesk;
  readonly keeper: PolicyKeeper;
  /** Takes what the cluster states of the pool's workloads, beside the policy. */
  readonly workloads: LiveWorkloads;
  /** What depends on the model that a request names: its profile, and the model that it gets instead. */
  readonly models: Required<Pick<GatewayOptions, "profileOf" | "rewrites">>;
  /** Request header that chooses among profiles; undefined while none is allowed. */
  readonly profileHeader: () => string | undefined;
  /** Begins to watch. */
  start(): void;
  /** What the configuration asked for and was refused is asked for again. */
  retry(): void;
  /** Resolves soon: once what other replicas have in force is known, where they can be asked. */
  caughtUp(): Promise<void>;
  stop(): Promise<void>;
}

/** The policy of a plan, put in force again where a later one was kept; watches nothing before it is started. */
export function livePolicy(options: LivePolicyOptions): LivePolicy {
  const { plan, environment, tap, report, gateway, past, folder, store, objections, giveWay, reread } = options;
  const running = plan.config;
  const define = (name: string, profile: ProfileSpec): void => {
    tap.accept({ kind: "profile-changed", at: nowMicros(), name, profile });
  };
  const workloads = new LiveWorkloads(running.discovery.workloads !== undefined);
  const start = policyOf(plan, running);
  let chooser = profileChooser(past?.versions.at(-1)?.policy ?? start, define);
  const apply = ({ policy, version, source }: PolicyChange): void => {
    const { profiles, profile, config } = policy;
    const asked = admissionSpec(config.admission);
    const admission = asked && { ...asked, classes: workloads.classes(asked.classes) };
    // All of it in one run of the event loop: between two decisions.
    tap.accept({
      kind: "policy-changed",
      at: nowMicros(),
      version,
      source,
      profiles: Object.fromEntries(Object.values(profiles).map(({ name, spec }) => [name, spec])),
      defaultProfile: profile.name,
      ...(admission && { admission }),
    });
    for (const event of tooSlowFor(policy, options.scrapeMillis)) report(event);
    chooser = profileChooser(policy, define);
    gateway()?.changeLimits(gatewayLimits(policy.config));
  };
  const keeper: PolicyKeeper = new PolicyKeeper({
    start,
    past,
    objections,
    giveWay,
    changed: () => keep(),
    historyMax: running.policy.historyMax,
    apply,
    report: (proposal, outcome) => report(eventOf(proposal, outcome)),
  });
  const keep = () => folder?.orders.write(folder.policy, policiesText(keeper.past));
  keep();
  workloads.changed = () => {
    const { policy, version } = keeper.latest;
    apply({ policy, version, source: "inference-objectives" });
  };
  const sources = sourcesOf(plan, reread);
  const shared = store && new PolicyShare({ store, keeper, running, report });
  const unkept = () => unkeptOf(folder, shared === undefined ? [] : [shared.soon()]);
  return {
    desk: documentDesk(keeper, running, environment, unkept),
    keeper,
    workloads,
    models: { profileOf: (model, asked) => chooser(model, asked), rewrites: workloads.rewrites },
    profileHeader: () => headerOf(keeper.inForce),
    start: () => {
      shared?.start();
      for (const source of sources) source.start(keeper.offer);
    },
    retry: () => {
      for (const source of sources) source.retry();
    },
    caughtUp: async () => void (await shared?.soon()),
    stop: async () => {
      shared?.stop();
      for (const source of sources) await source.stop();
      keep();
      await folder?.orders.settled(ORDER_ANSWER_MILLIS);
    },
  };
}

function headerOf({ config: { routing } }: Policy): string | undefined {
  return routing.profilesAllowed.length === 0 ? undefined : routing.profileHeader;
}

/** Everything that is watched. The admin API is not: its calls come by themselves. */
function sourcesOf({ config, configFile, reload }: ServePlan, reread: (config: Config) => void): PolicySource[] {
  const { watchMillis } = config.policy;
  if (configFile === undefined || reload === undefined || watchMillis === 0) return [];
  return [new FileSource({ configFile, reload, reread, running: config, watchMillis })];
}

export function gatewayLimits({ limits: { holdMillis, ...limits } }: Config) {
  return holdMillis === undefined ? limits : { ...limits, holdMillis };
}

/** Changed keys that a log line names. */
const PATHS_MAX = 10;

function eventOf(
  { source, by, note }: Pick<PolicyProposal, "source" | "by" | "note">,
  outcome: PolicyOutcome,
): FaultEvent {
  const from = [source, by, note].filter((text) => text !== "").join(", ");
  const { version } = outcome;
  if (outcome.outcome !== "refused") {
    const paths = "changes" in outcome ? outcome.changes.map(({ path }) => path) : [];
    const more = paths.length > PATHS_MAX ? [`${paths.length - PATHS_MAX} more`] : [];
    const keys = [...paths.slice(0, PATHS_MAX), ...more].join(", ");
    return {
      kind: "policy-changed",
      detail: `from ${from}: ${keys}`,
      done: "it decides from now on",
      figures: { version },
    };
  }
  const detail = `from ${from}: ${outcome.problems.join("; ")}`;
  return {
    kind: "policy-refused",
    detail,
    done: `nothing was changed; version ${version} stays`,
    figures: { version },
  };
}
