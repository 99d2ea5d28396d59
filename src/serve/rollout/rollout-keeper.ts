import { ConfigError } from "#config/config-error.ts";
import type { BookInput, RolloutBook } from "#core/rollout/rollout-book.ts";
import { isRolloutUnderWay } from "#core/rollout/rollout-book.ts";
import { promotionDoubts } from "#core/rollout/promotion-doubts.ts";
import { JUDGE, type RolloutState, type RolloutStep, type StepKind } from "#core/rollout/rollout-state.ts";
import type { Rollouts } from "#core/rollouts.ts";
import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";
import type { FaultEvent } from "#live/log/fault-log.ts";
import type { RolloutAdmin, RolloutReply, RolloutStepRequest } from "#live/admin/rollout-admin.ts";
import type { RolloutsView } from "#live/admin/rollout-view.ts";
import type { Intake } from "#live/base/intake.ts";
import type { Policy } from "../policy/policy.ts";
import type { SharedStore } from "../state/shared-store.ts";
import type { RolloutMemory } from "./rollout-memory.ts";
import { adoptRollout, type PolicyInForce } from "./adopted-rollout.ts";
import { JudgeShare } from "./judge-share.ts";
import { RolloutShare } from "./rollout-share.ts";
import { byThen } from "../state/unkept.ts";
import type { SavedRollout } from "./saved-rollout.ts";
import { askedRollout } from "./rollout-spec.ts";
import { rolloutViewOf } from "./rollout-view-of.ts";
import { inTheWay, objectionsOf } from "./rollouts-in-the-way.ts";
import { isControlled, StandingPromotions } from "./standing-promotions.ts";
import { WaitingRollouts } from "./waiting-rollouts.ts";

export interface RolloutKeeperOptions extends PolicyInForce {
  readonly intake: Intake;
  readonly now: () => Micros;
  readonly memory: RolloutMemory;
  readonly report: (event: FaultEvent) => void;
  readonly lookMillis: number;
  /** Rollouts that are kept; the oldest ended ones are forgotten. */
  readonly keptMax: number;
  /** Size of a document. */
  readonly bytesMax: number;
  /** Requests are predicted. */
  readonly predicts?: boolean;
  /** Whether the policy's history has an arm's promotion. */
  readonly hasPromoted?: (rollout: string, arm: string) => boolean;
  /** Sees all rollouts at every look, and after each step. */
  readonly followed?: (book: RolloutBook) => void;
  /** What replicas share; each runs its own rollouts where it is left out. */
  readonly store?: SharedStore | undefined;
  /** This one among them. */
  readonly replica?: string | undefined;
}

const SHARED_KEY = "rollouts";

/**
 * Keeps the rollouts of a running gateway: the only one who gives the router their inputs. It has the judges look by the
 * clock, takes the steps that they call for at once, and those that operators ask for where they can be.
 */
export class RolloutKeeper implements RolloutAdmin {
  readonly #options: RolloutKeeperOptions;
  readonly #memory: RolloutMemory;
  readonly #share: RolloutShare | undefined;
  readonly #judges: JudgeShare | undefined;
  /** There was a rollout as the store could not be asked any more. */
  #isApart = false;
  #timer: NodeJS.Timeout | undefined;
  readonly #waiting: WaitingRollouts;
  readonly #promotions = new StandingPromotions();

  constructor(options: RolloutKeeperOptions) {
    this.#options = options;
    this.#memory = options.memory;
    this.#waiting = new WaitingRollouts(options.report);
    const { store, report, replica = "" } = options;
    if (store === undefined) return;
    this.#judges = new JudgeShare({
      store,
      replica,
      rollouts: () => this.#rollouts,
      accept: (input) => void options.intake.accept(input),
      replaced: (rollout) => this.#memory.replaced(this.#rollouts, rollout),
      now: options.now,
      wallStartMicros: options.memory.wallStartMicros,
      failed: (detail) =>
        report({
          kind: "sharing-lost",
          detail,
          done: "rollouts are judged here by this gateway's own share of the requests",
        }),
      recovered: () => {
        const detail = "what rollouts are judged by";
        report({ kind: "sharing-recovered", detail, done: "one judge sees what all gateways see" });
      },
    });
    this.#share = new RolloutShare({
      store,
      key: SHARED_KEY,
      own: () => this.#memory.saved(this.#rollouts),
      adopt: (rollout) => this.#adopt(rollout),
      failed: (detail) => {
        // Whoever starts one meanwhile learns it from the answer.
        this.#isApart = this.#rollouts.book.length > 0;
        if (this.#isApart) report({ kind: "state-failed", detail, done: "this replica runs its rollouts by itself" });
      },
      recovered: () => {
        if (!this.#isApart) return;
        const detail = "rollouts are shared again";
        report({ kind: "rollout-step", detail, done: "replicas take each other's steps" });
      },
    });
  }

  /** Gives the router what was kept before a restart, before anything else reaches it. */
  restore(): void {
    this.#memory.restore(this.#options.intake, this.#options.now());
    for (const state of this.#rollouts.book) this.#completePromotion(state);
    this.#judges?.attach();
  }

  /** A promotion changes policy and rollout, which are two files: a kill may have come between them. */
  #completePromotion(state: RolloutState): void {
    const { hasPromoted, policy, promote } = this.#options;
    if (hasPromoted === undefined) return;
    const { plan, phase, promoted } = state;
    const arm = plan.arms.find(({ name }) => hasPromoted(plan.name, name))?.name;
    if (isRolloutUnderWay(state) && arm !== undefined) {
      const at = Math.max(this.#options.now(), state.at);
      const reason = "its promotion was under way when the gateway ended";
      const step: RolloutStep = {
        kind: "rollout-step",
        at,
        rollout: plan.name,
        step: "promote",
        arm,
        reason,
        by: "restart",
      };
      if (this.#give(step).length === 0) this.#stepped(step);
    } else if (phase === "promoted" && arm === undefined && !this.#memory.isOvertaken(plan.name)) {
      if (isControlled(state, policy())) promote(state, promoted, "restart");
    }
  }

  get bytesMax(): number {
    return this.#options.bytesMax;
  }

  /** Resolves soon: once what other replicas run is known, where they can be asked. */
  async caughtUp(): Promise<void> {
    await this.#shared();
  }

  /** Begins to look. */
  begin(): void {
    this.#timer ??= setInterval(() => this.tick(), this.#options.lookMillis).unref();
    void this.#share?.sync();
  }

  async end(): Promise<void> {
    clearInterval(this.#timer);
    await this.#memory.end(this.#rollouts);
  }

  /** Rollouts of the configuration: each is started once, as soon as it can be. */
  follow(documents: readonly { readonly name: string }[]): void {
    this.#waiting.follow(documents);
  }

  view(): RolloutsView {
    const at = this.#options.now();
    const rank = (state: RolloutState) => (isRolloutUnderWay(state) || state.phase === "planned" ? 0 : 1);
    const states = this.#rollouts.book.toSorted((a, b) => rank(a) - rank(b) || b.at - a.at);
    return {
      at: this.#memory.wallOf(at),
      rollouts: states.map(({ plan: { name } }) => this.#viewOf(name, at)),
    };
  }

  async start(
    document: unknown,
    { by, dryRun }: { readonly by: string; readonly dryRun: boolean },
  ): Promise<RolloutReply> {
    // What other replicas run is known first, where they can be asked.
    await this.#shared();
    const at = this.#options.now();
    const problems = this.#plan(document, by, at, dryRun);
    if (typeof problems !== "string") return { outcome: "refused", problems };
    if (dryRun) return { outcome: "checked" };
    return this.#applied(problems, at);
  }

  async step({ rollout, step, arm = "", reason, evenSo, by }: RolloutStepRequest): Promise<RolloutReply> {
    const at = this.#options.now();
    const doubts = step === "promote" && evenSo !== true ? this.#doubts(rollout, arm, at) : [];
    if (doubts.length > 0) return { outcome: "refused", problems: doubts };
    const problems = this.#step(rollout, step, { at, arm, reason: reason ?? `${step} was asked for`, by });
    return problems.length > 0 ? { outcome: "refused", problems } : this.#applied(rollout, at);
  }

  async remove(rollout: string): Promise<RolloutReply> {
    const at = this.#options.now();
    const view = this.#rollouts.watch(rollout) === undefined ? undefined : this.#viewOf(rollout, at);
    const problems = this.#give({ kind: "rollout-removed", at, rollout });
    if (problems.length > 0) return { outcome: "refused", problems };
    this.#memory.forget(rollout);
    this.#memory.save(this.#rollouts);
    return { outcome: "applied", rollout: view!, unkept: await this.#memory.unkept([]) };
  }

  /** What a policy changes of what rollouts under way, or planned, compare and are made beside. */
  objections(asked: Policy, inForce: Policy): string[] {
    return inTheWay(this.#rollouts, asked, inForce).flatMap(objectionsOf);
  }

  /** Rolls back those that it changes something of, and forgets those that have not begun: what became of each. */
  giveWay(asked: Policy, inForce: Policy, by: string): string[] {
    const at = this.#options.now();
    return inTheWay(this.#rollouts, asked, inForce).map(({ name, paths }) => {
      const reason = `${paths.join(", ")} had to change`;
      if (this.#step(name, "rollback", { at, arm: "", reason, by }).length === 0) return `${name}: rolled back`;
      this.#forget(name, `${by}: ${reason}`);
      return `${name}: removed before it began; another one needs another name`;
    });
  }

  /** One look, as the clock has it. */
  tick(): void {
    const { intake, now } = this.#options;
    const at = now();
    if (this.#rollouts.book.some(({ phase }) => phase === "running")) {
      intake.accept({ kind: "rollout-look", at });
      for (const step of this.#rollouts.proposals) if (this.#judges?.mayStep(step.rollout) !== false) this.#take(step);
      this.#memory.measured(this.#rollouts, at);
    }
    for (const { plan, phase } of this.#rollouts.book) {
      const due = phase === "planned" && at >= this.#memory.startsAt(plan.name);
      if (!due) continue;
      const by = this.#memory.starterOf(plan.name);
      this.#step(plan.name, "start", { at, arm: "", reason: "the policy was watched for its baseline", by });
    }
    for (const rollout of this.#promotions.overtaken(this.#rollouts.book, this.#options.policy())) {
      this.#memory.overtake(rollout);
      this.#memory.save(this.#rollouts);
    }
    void this.#share?.sync();
    void this.#judges?.sync();
    // Another replica may run one of that name already.
    if (this.#share?.asked !== false) {
      const isOver = (name: string) => this.#rollouts.watch(name) !== undefined || this.#memory.hasEnded(name);
      this.#waiting.tryEach(isOver, (document) => this.#plan(document, "configuration", at, false));
    }
    this.#options.followed?.(this.#rollouts.book);
    void this.#memory.saveMeasures(this.#rollouts);
  }

  get #rollouts(): Rollouts {
    return this.#options.intake.router.rollouts;
  }

  /** The name of a rollout that is there to be started now; what is wrong where it cannot be. */
  #plan(document: unknown, by: string, at: Micros, dryRun: boolean): string | readonly string[] {
    let asked;
    try {
      asked = askedRollout(document, this.#options.policy(), this.#options.predicts ?? false);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return error.lines;
    }
    const { baselineMicros, ...spec } = asked;
    const { name } = spec.plan;
    const rival = this.#rollouts.rivalOf(spec.plan, at);
    if (rival !== undefined) return [rival];
    if (this.#memory.hasEnded(name))
      return [`name: expected one that no rollout had, not even one that was removed, got ${JSON.stringify(name)}`];
    const planned = { kind: "rollout-planned", at, ...spec } as const;
    const refusal = this.#rollouts.refusal(planned);
    if (refusal !== undefined) return [refusal];
    if (dryRun) return name;
    this.#memory.plan(name, at + baselineMicros, by);
    this.#give(planned);
    this.#letGo();
    if (baselineMicros === 0) this.#step(name, "start", { at, arm: "", reason: "as asked", by });
    else {
      const detail = `${name} by ${by}: its first window begins in ${baselineMicros / MICROS_PER_MILLI} ms`;
      this.#options.report({ kind: "rollout-step", detail, done: "what the policy does until then is watched" });
    }
    return name;
  }

  #step(rollout: string, step: StepKind, how: Pick<RolloutStep, "at" | "arm" | "reason" | "by">): readonly string[] {
    return this.#take({ kind: "rollout-step", rollout, step, ...how });
  }

  /** A promotion changes the policy first: both happen in one run of the event loop, between two decisions. */
  #take(step: RolloutStep): readonly string[] {
    const { rollout, arm, by } = step;
    const refusal = this.#rollouts.refusal(step);
    if (refusal !== undefined) return [refusal];
    if (step.step === "promote") {
      const problems = this.#options.promote(this.#rollouts.watch(rollout)!.state, arm, by);
      if (problems.length > 0) return problems;
    }
    this.#give(step);
    this.#stepped(step);
    return [];
  }

  #stepped(step: RolloutStep): void {
    const { rollout, reason, by } = step;
    this.#memory.stepped(step);
    const kind =
      by === JUDGE && step.step !== "advance" && step.step !== "lengthen" ? "rollout-taken-back" : "rollout-step";
    this.#options.report({ kind, detail: `${rollout}, ${step.step} by ${by}: ${reason}`, done: DONE[step.step] });
    if (step.step === "rollback") this.#options.takenBack?.();
    this.#options.followed?.(this.#rollouts.book);
    this.#changed();
  }

  #adopt(saved: SavedRollout): void {
    const [rollouts, at] = [this.#rollouts, this.#options.now()];
    const give = (input: BookInput) => this.#give(input);
    const take = (step: RolloutStep) => this.#take(step);
    if (adoptRollout(saved, { ...this.#options, rollouts, at, give, take })) this.#memory.save(rollouts);
  }

  #changed(): void {
    this.#memory.save(this.#rollouts);
    void this.#share?.sync();
  }

  #doubts(rollout: string, arm: string, at: Micros): string[] {
    const watch = this.#rollouts.watch(rollout);
    if (watch === undefined || !isRolloutUnderWay(watch.state)) return [];
    const { state, judge, agreements } = watch;
    const known = { state, judge, agreements, readings: watch.readings(at) };
    const doubts = promotionDoubts(known, this.#rollouts.spec(rollout)!.rules, arm);
    return doubts.map((one) => `promote: ${one}; --even-so (evenSo: true) promotes it all the same`);
  }

  /** Resolves soon: with "" where the others know what is here, and this one what is there. */
  #shared(): Promise<string> {
    if (this.#share === undefined) return Promise.resolve("");
    return byThen(this.#share.sync(), "what is shared did not answer in time");
  }

  #give(input: BookInput): readonly string[] {
    const refusal = this.#rollouts.refusal(input);
    if (refusal !== undefined) return [refusal];
    this.#options.intake.accept(input);
    this.#judges?.attach();
    return [];
  }

  async #applied(rollout: string, at: Micros): Promise<RolloutReply> {
    const unkept = await this.#memory.unkept([this.#shared()]);
    return { outcome: "applied", rollout: this.#viewOf(rollout, at), unkept };
  }

  #viewOf(name: string, at: Micros) {
    const { rules } = this.#rollouts.spec(name)!;
    const watch = this.#rollouts.watch(name)!;
    const scope = this.#judges?.scope(name);
    return rolloutViewOf({ watch, rules, scope, ...this.#memory.story(name) }, at, this.#memory.wallOf);
  }

  /** One that has not begun. */
  #forget(rollout: string, why: string): void {
    this.#give({ kind: "rollout-removed", at: this.#options.now(), rollout });
    this.#memory.forget(rollout);
    this.#options.report({ kind: "rollout-step", detail: `${rollout}, removed by ${why}`, done: DONE.rollback });
    this.#changed();
  }

  #letGo(): void {
    const ended = this.#rollouts.book.filter((state) => !isRolloutUnderWay(state) && state.phase !== "planned");
    for (const { plan } of ended.slice(0, Math.max(0, this.#rollouts.book.length - this.#options.keptMax))) {
      this.#give({ kind: "rollout-removed", at: this.#options.now(), rollout: plan.name });
      if (this.#rollouts.watch(plan.name) === undefined) this.#memory.forget(plan.name);
    }
  }
}

const DONE: Readonly<Record<StepKind, string>> = {
  start: "requests have their arms from now on",
  pause: "the control routes",
  resume: "requests have their arms again",
  advance: "more requests are on the other arm",
  lengthen: "windows are three times as long, and the comparison begins anew",
  promote: "its profile is the policy's",
  rollback: "the policy decides as before",
};
