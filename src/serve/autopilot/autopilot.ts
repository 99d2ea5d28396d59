import { createHash } from "node:crypto";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { AutopilotAdmin, AutopilotOutcome, AutopilotView, ProposalView } from "#live/admin/autopilot-admin.ts";
import type { FaultEvent } from "#live/log/fault-log.ts";
import type { RolloutAdmin } from "#live/admin/rollout-admin.ts";
import { policyKey } from "#shadow/tune/policy-space.ts";
import type { TuneAnswer } from "#shadow/tune/tune.ts";
import { VERDICTS } from "#shadow/tune/verdict.ts";

export interface AutopilotOptions {
  readonly start: AutopilotView["start"];
  readonly objective: string;
  readonly gainMin: number;
  readonly proposalsMax: number;
  readonly startsPerDayMax: number;
  readonly windowMillis: number;
  readonly policy: () => { readonly version: number; readonly profile: string };
  /** Puts a profile beside those of the policy, which goes on deciding; what is wrong where it cannot be. */
  readonly addProfile: (name: string, spec: ProfileSpec, by: string) => readonly string[];
  readonly rollouts: Pick<RolloutAdmin, "view" | "start">;
  readonly report: (event: FaultEvent) => void;
  readonly now: () => Date;
}

type Proposal = { -readonly [K in keyof ProposalView]: ProposalView[K] };

/** Who starts a rollout without a person. */
const ALONE = "autopilot";
const DAY_MILLIS = 86_400_000;
const NAME_CHARS = 8;

/** Searches whose traffic was routed by another policy than the one in force now. */
const OUTDATED = "outdated";

/**
 * Makes rollouts of what searches found. It changes nothing by itself but where the configuration lets it: a proposal waits
 * for a yes, and then goes the way of any rollout, with guardrails and by the admin API.
 */
export class Autopilot implements AutopilotAdmin {
  readonly #options: AutopilotOptions;
  /** Oldest first. */
  readonly #proposals: Proposal[] = [];
  readonly #searches: Record<string, number> = Object.fromEntries([...VERDICTS, OUTDATED].map((one) => [one, 0]));
  /** Times of rollouts that started without a person, within a day. */
  #startedAlone: number[] = [];
  #started = 0;
  #latest = "";
  #latestAt = "";

  constructor(options: AutopilotOptions) {
    this.#options = options;
  }

  view(): AutopilotView {
    for (const one of this.#proposals) if (one.state === "waiting" && this.#isOutdated(one)) one.state = "outdated";
    return {
      start: this.#options.start,
      searches: { ...this.#searches },
      latest: this.#latest,
      latestAt: this.#latestAt,
      started: this.#started,
      proposals: this.#proposals.toReversed(),
    };
  }

  /** A search came to its end. */
  async take(answer: TuneAnswer): Promise<void> {
    const { policy, now } = this.#options;
    const isOutdated = answer.inForce !== policy().profile;
    const outcome = isOutdated ? OUTDATED : answer.verdict.kind;
    this.#searches[outcome] = (this.#searches[outcome] ?? 0) + 1;
    this.#latestAt = now().toISOString();
    this.#latest = isOutdated
      ? `the policy was ${answer.inForce}'s when the traffic came, and is ${policy().profile}'s now`
      : answer.verdict.reasons.join("; ");
    if (outcome !== "better") return;
    const proposal = this.#proposed(answer);
    if (proposal === undefined) return;
    const gain = `${(100 * proposal.gain).toFixed(1)} %`;
    const detail = `${proposal.name} gains ${gain} over ${proposal.inForce} on what the search did not see`;
    this.#options.report({ kind: "autopilot-proposed", detail, done: "it waits for a yes" });
    if (this.#mayStart(proposal)) {
      this.#startedAlone.push(now().getTime());
      await this.accept(proposal.name, ALONE);
    }
  }

  async accept(name: string, by: string): Promise<AutopilotOutcome> {
    const proposal = this.#waiting(name);
    if (Array.isArray(proposal)) return { outcome: "refused", problems: proposal };
    const { addProfile, rollouts, report } = this.#options;
    // Nobody accepts it twice while the rollout is on its way.
    Object.assign(proposal, { state: "started", by });
    const problems = [...addProfile(name, proposal.profile as ProfileSpec, by)];
    if (problems.length === 0) {
      const outcome = await rollouts.start(proposal.rollout, { by, dryRun: false });
      if (outcome.outcome === "refused") problems.push(...outcome.problems);
    }
    if (problems.length > 0) {
      Object.assign(proposal, { state: "refused", detail: problems.join("; ") });
      report({
        kind: "autopilot-refused",
        detail: `${name}: ${proposal.detail}`,
        done: "the policy decides as before",
      });
      return { outcome: "refused", problems };
    }
    // What was found under the old policy's profile is compared by the rollout, whatever its version.
    this.#started++;
    return { outcome: "applied", proposal };
  }

  decline(name: string, by: string): AutopilotOutcome {
    const proposal = this.#waiting(name);
    if (Array.isArray(proposal)) return { outcome: "refused", problems: proposal };
    Object.assign(proposal, { state: "declined", by });
    return { outcome: "applied", proposal };
  }

  #waiting(name: string): Proposal | string[] {
    const proposal = this.#proposals.findLast((one) => one.name === name);
    if (proposal === undefined) return [`proposal: there is no ${JSON.stringify(name)}`];
    if (proposal.state !== "waiting")
      return [`proposal: expected one that waits, got ${name}, which is ${proposal.state}`];
    if (!this.#isOutdated(proposal)) return proposal;
    proposal.state = "outdated";
    return [`proposal: ${name} was compared with ${proposal.inForce}, and the policy is another one now`];
  }

  #isOutdated({ policyVersion }: Proposal): boolean {
    return policyVersion !== this.#options.policy().version;
  }

  /** Undefined for one that was declined, or waits already. */
  #proposed(answer: TuneAnswer): Proposal | undefined {
    const { objective, policy, proposalsMax, windowMillis, now } = this.#options;
    const { winner, heldOut } = answer;
    if (winner === undefined || heldOut === undefined) return undefined;
    const { spec } = winner.candidate;
    const digest = createHash("sha256").update(policyKey(spec)).digest("hex").slice(0, NAME_CHARS);
    const { version } = policy();
    const name = `tuned-${digest}-v${version}`;
    if (this.#proposals.some((one) => one.name === name && one.state !== "replaced")) return undefined;
    for (const one of this.#proposals) if (one.state === "waiting") one.state = "replaced";
    const { value, low, high } = heldOut.gain;
    const proposal: Proposal = {
      name,
      at: now().toISOString(),
      state: "waiting",
      by: "",
      detail: "",
      policyVersion: version,
      inForce: answer.inForce,
      objective,
      gain: value,
      gainLow: low,
      gainHigh: high,
      sessions: answer.split.heldOutSessions,
      profile: spec,
      rollout: {
        name: `to-${name}`,
        arms: [{ name: "control" }, { name: "other", profile: name }],
        design: { kind: "switchback", windowMillis },
        predictions: predictionsOf(answer),
      },
    };
    this.#proposals.push(proposal);
    if (this.#proposals.length > proposalsMax) this.#proposals.shift();
    return proposal;
  }

  #mayStart({ gainLow }: Proposal): boolean {
    const { start, gainMin, startsPerDayMax, rollouts, now } = this.#options;
    const since = now().getTime() - DAY_MILLIS;
    this.#startedAlone = this.#startedAlone.filter((at) => at > since);
    const isFree = rollouts.view().rollouts.every(({ phase }) => phase === "promoted" || phase === "rolled-back");
    return start === "alone" && gainLow >= gainMin && isFree && this.#startedAlone.length < startsPerDayMax;
  }
}

/** What a mean is predicted to change by, so that a result which contradicts it pauses the rollout. */
function predictionsOf({ objective, heldOut }: TuneAnswer): object[] {
  if (objective.kind !== "time" || objective.figure !== "mean" || heldOut === undefined) return [];
  const { gain, before } = heldOut;
  const millis = (part: number) => (-part * before) / MICROS_PER_MILLI;
  const metric = { ttftMicros: "ttft", tpotMicros: "tpot", e2eMicros: "e2e" }[objective.metric];
  return [{ arm: "other", metric, figure: "mean", lowMillis: millis(gain.high), highMillis: millis(gain.low) }];
}
