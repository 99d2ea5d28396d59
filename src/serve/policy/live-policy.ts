import { admissionSpec } from "#config/admission-spec.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import type { Config } from "#config/schema.ts";
import { nowMicros } from "#live/base/clock.ts";
import type { IdentityOptions } from "#live/http/identity.ts";
import type { ChoiceInForce } from "#live/routing/ask.ts";
import type { Intake } from "#live/base/intake.ts";
import type { FaultEvent, FaultLog } from "#live/log/fault-log.ts";
import type { PolicyAdmin, PolicyOutcome } from "#live/admin/policy-admin.ts";
import { profileChooser } from "./profile-chooser.ts";
import { type Scraped, tooSlowFor } from "./live-scrape.ts";
import { LiveWorkloads } from "./live-workloads.ts";
import type { ServePlan } from "../plan/serve-plan.ts";
import { policyAdmin } from "./policy-admin.ts";
import { PolicyFileSource } from "./policy-file-source.ts";
import type { SharedStore } from "../state/shared-store.ts";
import { ORDER_ANSWER_MILLIS, unkeptOf } from "../state/unkept.ts";
import { type Policy, policyOf } from "./policy.ts";
import { FILE_SOURCE, type PolicyChange, PolicyKeeper, type PolicyKeeperOptions } from "./policy-keeper.ts";
import { PolicyShare } from "./policy-share.ts";
import { policiesText } from "./saved-policies.ts";
import type { PolicyProposal, PolicySource } from "./policy-source.ts";
import { type Changed, type Changes, part } from "../assembly/part.ts";
import { LIVE_SETTINGS, type LiveSetting } from "#config/live-settings.ts";
import type { LiveState } from "./live-state.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";

interface Needed extends Pick<GatewayContext, "plan" | "environment">, Changes {
  readonly intake: Intake;
  readonly logs: { readonly faults: Pick<FaultLog, "report"> };
  readonly state: LiveState & Scraped;
  /** What replicas share; undefined where there is none beside this gateway. */
  readonly share: { readonly store: SharedStore } | undefined;
}

/** What may stand in the way of a policy that is well by itself, and gives way where that is forced. */
type Objecting = Required<Pick<PolicyKeeperOptions, "objections" | "giveWay">>;

/** The policy of a running gateway: what requests are chosen and limited by, and all that may change it. */
export interface LivePolicy {
  readonly admin: PolicyAdmin;
  readonly keeper: PolicyKeeper;
  /** Takes what the cluster states of the pool's workloads, beside the policy. */
  readonly workloads: LiveWorkloads;
  /** What requests are looked at by. */
  readonly inForce: ChoiceInForce & IdentityOptions["inForce"];
  /** Puts what was asked for into force. */
  decide(changed: Changed): void;
  /** From now on this may stand in the way. */
  heed(objecting: Objecting): void;
  /** Begins to watch. */
  start(): void;
  /** What the configuration asked for and was refused is asked for again. */
  retry(): void;
  /** Resolves soon: once what other replicas have in force is known, where they can be asked. */
  caughtUp(): Promise<void>;
  stop(): Promise<void>;
}

/** The policy of a plan, put in force again where a later one was kept; watches nothing before it is started. */
function livePolicy({ plan, environment, intake, logs, state, share, changed }: Needed): LivePolicy {
  const { report } = logs.faults;
  const { past, folder, scrapeMillis } = state;
  const running = plan.config;
  const workloads = new LiveWorkloads(running.discovery.workloads !== undefined);
  const start = policyOf(plan, running);
  const decided = decider(past?.versions.at(-1)?.policy ?? start, { intake, report, scrapeMillis, workloads });
  let objecting: Objecting = { objections: () => [], giveWay: () => [] };
  const apply = (settings: readonly LiveSetting[], { policy, version, source }: PolicyChange): void =>
    changed(settings, { ...policy, version, source });
  const keeper: PolicyKeeper = new PolicyKeeper({
    start,
    past,
    objections: (asked, inForce) => objecting.objections(asked, inForce),
    giveWay: (asked, inForce, by) => objecting.giveWay(asked, inForce, by),
    changed: () => keep(),
    historyMax: running.policy.historyMax,
    apply: (change) => apply(POLICY_SETTINGS, change),
    report: (proposal, outcome) => report(eventOf(proposal, outcome)),
  });
  const keep = () => folder?.orders.write(folder.policy, policiesText(keeper.past));
  keep();
  workloads.changed = () => {
    const { policy, version } = keeper.latest;
    apply(["admission"], { policy, version, source: "inference-objectives" });
  };
  const reread = (read: ServePlan): void =>
    changed(["rollout.start"], { ...read, version: keeper.version, source: FILE_SOURCE });
  const sources = sourcesOf(plan, reread);
  const shared = share && new PolicyShare({ store: share.store, keeper, running, report });
  const unkept = () => unkeptOf(folder, shared === undefined ? [] : [shared.soon()]);
  return {
    admin: policyAdmin(keeper, running, environment, unkept),
    keeper,
    workloads,
    inForce: decided.inForce,
    decide: decided.decide,
    heed: (by) => {
      objecting = by;
    },
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

interface Deciding extends Scraped {
  readonly intake: Intake;
  readonly report: FaultLog["report"];
  readonly workloads: LiveWorkloads;
}

/** What requests are chosen by: at first this policy, then what is decided. */
function decider(inForce: Policy, { intake, report, scrapeMillis, workloads }: Deciding) {
  const define = (name: string, profile: ProfileSpec): void => {
    intake.accept({ kind: "profile-changed", at: nowMicros(), name, profile });
  };
  const requests: Mutable<LivePolicy["inForce"]> = {
    profileHeader: headerOf(inForce),
    profileOf: profileChooser(inForce, define),
    rewrites: undefined,
  };
  workloads.rewritten = (rewrites) => {
    requests.rewrites = rewrites.isEmpty ? undefined : rewrites;
  };
  const decide = (to: Changed): void => {
    const { profiles, profile, config, version, source } = to;
    const asked = admissionSpec(config.admission);
    const admission = asked && { ...asked, classes: workloads.classes(asked.classes) };
    // All of it in one run of the event loop: between two decisions.
    intake.accept({
      kind: "policy-changed",
      at: nowMicros(),
      version,
      source,
      profiles: Object.fromEntries(Object.values(profiles).map(({ name, spec }) => [name, spec])),
      defaultProfile: profile.name,
      ...(admission && { admission }),
    });
    for (const event of tooSlowFor(to, scrapeMillis)) report(event);
    requests.profileHeader = headerOf(to);
    requests.profileOf = profileChooser(to, define);
  };
  return { decide, inForce: requests };
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function headerOf({ config: { routing } }: Pick<Policy, "config">): string | undefined {
  return routing.profilesAllowed.length === 0 ? undefined : routing.profileHeader;
}

/** What a policy may change. */
const POLICY_SETTINGS: readonly LiveSetting[] = LIVE_SETTINGS.filter((setting) => setting !== "rollout.start");

/** What the router decides by, which it takes over in one input. */
export const policyPart = part({
  name: "policy",
  needs: ["plan", "environment", "changed", "intake", "logs", "state", "share"],
  start: (needed: Needed) => livePolicy(needed),
  settings: POLICY_SETTINGS.filter((setting) => setting !== "limits"),
  change: (policy, changed) => policy.decide(changed),
  stop: (policy) => policy.stop(),
});

/** Everything that is watched. The admin API is not: its calls come by themselves. */
function sourcesOf({ config, configFile, reload }: ServePlan, reread: (read: ServePlan) => void): PolicySource[] {
  const { watchMillis } = config.policy;
  if (configFile === undefined || reload === undefined || watchMillis === 0) return [];
  return [new PolicyFileSource({ configFile, reload, reread, running: config, watchMillis })];
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
