import type { Decision } from "./input/decision.ts";
import type { Input } from "./input/input.ts";
import type { ProfileSpec } from "./plugin/spec.ts";
import type { RouteRequest } from "./request/request.ts";
import type { Assignment } from "./rollout/assignment.ts";
import { Judge } from "./rollout/judge/judge.ts";
import type { Times } from "./rollout/judge/outcome.ts";
import {
  bookAfter,
  type BookInput,
  EMPTY_BOOK,
  isAbout,
  isRolloutUnderWay,
  rivalOf,
  type RolloutBook,
  rolloutOf,
} from "./rollout/rollout-book.ts";
import type { RolloutLook, RolloutPredicted, RolloutShared, RolloutSpec } from "./rollout/rollout-input.ts";
import type { RolloutPlan } from "./rollout/plan/rollout-plan.ts";
import type { RolloutStep } from "./rollout/rollout-state.ts";
import { RolloutWatch } from "./rollout-watch.ts";
import type { Micros } from "./base/units.ts";

/** The rollout that a request takes part in, its arm there, and what it is routed by because of that. */
export interface RolloutMembership {
  readonly rollout: string;
  readonly arm: string;
  readonly assignment: Assignment;
  /** Arms that decide too, by their place in the plan. */
  readonly shadows: readonly { readonly arm: number; readonly profile: string }[];
}

type Profiles = Readonly<Record<string, ProfileSpec>>;

interface Entry extends Omit<RolloutSpec, "plan"> {
  readonly watch: RolloutWatch;
}

/** All rollouts of a router, and what they make of its requests. */
export class Rollouts {
  #book: RolloutBook = EMPTY_BOOK;
  readonly #entries = new Map<string, Entry>();
  readonly #predictionOf: ((request: RouteRequest) => Times | undefined) | undefined;
  #underWay = false;
  #planned = false;
  /** Some request may belong to one: only then `assign` is to be asked. */
  takesRequests = false;
  /** Some request may have to stay with its conversation. */
  readsSessions = false;
  /** There is one, so that inputs and decisions are to be observed. */
  isWatching = false;
  /** What the last look called for, for the host to accept or not. */
  proposals: readonly RolloutStep[] = [];
  /** Inputs that could not be: a gap in a trace, or a host that did not ask `refusal`. */
  refused = 0;

  /** `predictionOf`: what the simulator expects of a request if the control routes everything. */
  constructor(predictionOf?: (request: RouteRequest) => Times | undefined) {
    this.#predictionOf = predictionOf;
  }

  get book(): RolloutBook {
    return this.#book;
  }

  /** Profiles that rollouts under way need, by name. */
  get profiles(): Profiles {
    const needed = this.#book.filter(isRolloutUnderWay).map(({ plan }) => this.#entries.get(plan.name)!.profiles);
    return Object.assign({}, ...needed) as Profiles;
  }

  watch(rollout: string): RolloutWatch | undefined {
    return this.#entries.get(rollout)?.watch;
  }

  spec(rollout: string): Omit<RolloutSpec, "plan"> | undefined {
    return this.#entries.get(rollout);
  }

  /** Why an input cannot be, with what is expected; undefined where it can. */
  refusal(input: BookInput): string | undefined {
    const next = bookAfter(this.#book, input);
    return typeof next === "string" ? next : undefined;
  }

  /** What stands in the way of another rollout at that time; undefined where nothing does. */
  rivalOf(plan: RolloutPlan, at: Micros): string | undefined {
    return rivalOf(this.#book, plan, at);
  }

  /** Changes nothing where it cannot be. */
  change(input: BookInput): void {
    const next = bookAfter(this.#book, input);
    if (typeof next === "string") {
      this.refused++;
      return;
    }
    if (input.kind === "rollout-removed") this.#entries.delete(input.rollout);
    else this.#follow(input, next);
    this.#book = next;
    this.#underWay = next.some(isRolloutUnderWay);
    this.#planned = next.some(({ phase }) => phase === "planned");
    this.takesRequests = this.#underWay || this.#planned;
    this.isWatching = this.#entries.size > 0;
    this.readsSessions = next.some((one) => {
      const { design } = one.plan;
      return isRolloutUnderWay(one) && "by" in design && design.by === "session";
    });
  }

  look({ at }: RolloutLook): void {
    this.proposals = this.#book.flatMap(({ plan, phase }) => {
      const step = phase === "running" ? this.watch(plan.name)?.look(at) : undefined;
      return step === undefined ? [] : [step];
    });
  }

  /** One that is not there, or that was taken away meanwhile, needs no predictions. */
  predicted({ rollout, requests }: RolloutPredicted): void {
    this.watch(rollout)?.predicted(requests);
  }

  /** One that is not there, or that was taken away meanwhile, is judged by nobody. */
  shared(input: RolloutShared): void {
    const entry = this.#entries.get(input.rollout);
    if (entry === undefined) return;
    const { watch, rules } = entry;
    const judge = input.judge && new Judge({ plan: watch.state.plan, ...rules }, input.judge);
    watch.shared(input, judge);
  }

  /** Where a request belongs; undefined where no rollout is about it. `request.session` is known where it is read. */
  assign(request: RouteRequest, at: Micros): RolloutMembership | undefined {
    if (request.ownProfile === true) return undefined;
    if (this.#planned) this.#watchPlanned(request, at);
    if (!this.#underWay) return undefined;
    const state = rolloutOf(this.#book, request.model);
    if (state === undefined) return undefined;
    const { name, arms } = state.plan;
    const assignment = this.#entries.get(name)!.watch.assign(request, at);
    const shadows = assignment.shadowArms.map((arm) => ({ arm, profile: arms[arm]!.profile }));
    return { rollout: name, arm: arms[assignment.arm]!.name, assignment, shadows };
  }

  /** What the policy does before the start is what guardrails compare the first window with. */
  #watchPlanned(request: RouteRequest, at: Micros): void {
    for (const { plan, phase } of this.#book) {
      if (phase === "planned" && isAbout(plan, request.model)) this.watch(plan.name)!.assign(request, at);
    }
  }

  observe(input: Input, decision: Decision | undefined): void {
    for (const { watch } of this.#entries.values()) if (watch.inFlight > 0) watch.observe(input, decision);
  }

  #follow(input: Exclude<BookInput, { readonly kind: "rollout-removed" }>, book: RolloutBook): void {
    if (input.kind === "rollout-step") {
      const { watch } = this.#entries.get(input.rollout)!;
      return watch.move(book.find(({ plan }) => plan.name === input.rollout)!);
    }
    const { rules, profiles } = input;
    const name = input.kind === "rollout-planned" ? input.plan.name : input.state.plan.name;
    const state = book.find(({ plan }) => plan.name === name)!;
    const known = this.#entries.get(name);
    if (input.kind === "rollout-restored" && input.judge === undefined && known !== undefined) {
      known.watch.move(state);
      return;
    }
    const saved = input.kind === "rollout-restored" ? input.judge : undefined;
    const agreements = input.kind === "rollout-restored" ? input.agreements : undefined;
    const judge = new Judge({ plan: state.plan, ...rules }, saved);
    const awaits = rules.awaitsPredictions === true;
    const watch = new RolloutWatch(state, judge, { predictionOf: this.#predictionOf, awaits, agreements });
    this.#entries.set(name, { watch, rules, profiles });
  }
}
