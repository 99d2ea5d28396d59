import { MICROS_PER_SECOND, type Micros } from "../units.ts";
import { planProblems, type RolloutPlan } from "./rollout-plan.ts";
import { plannedRollout, type RolloutState, type RolloutStep, steppedRollout } from "./rollout-state.ts";

/** A new rollout is there to be started. An input, as its steps are. */
export interface RolloutPlanned {
  readonly kind: "rollout-planned";
  readonly at: Micros;
  readonly plan: RolloutPlan;
}

/** An ended rollout is taken away; what it promoted routes no longer, so the policy must have been changed before. */
export interface RolloutRemoved {
  readonly kind: "rollout-removed";
  readonly at: Micros;
  readonly rollout: string;
}

export type RolloutInput = RolloutPlanned | RolloutStep | RolloutRemoved;

/** All rollouts by name: plain data. */
export type RolloutBook = readonly RolloutState[];

export const EMPTY_BOOK: RolloutBook = [];

/** Rollouts that are kept, ended ones included. */
export const ROLLOUTS_MAX = 64;

/**
 * The book after an input; a text that states why it is refused where it is, and then nothing has changed. No two rollouts
 * of one model are under way together; one that is for all models stands in the way of every other.
 */
export function bookAfter(book: RolloutBook, input: RolloutInput): RolloutBook | string {
  if (input.kind === "rollout-planned") return planned(book, input);
  const name = input.rollout;
  const state = book.find(({ plan }) => plan.name === name);
  if (state === undefined) {
    const known = book.length === 0 ? "there is none" : `expected ${book.map(({ plan }) => plan.name).join(", ")}`;
    return `rollout ${JSON.stringify(name)}: ${known}`;
  }
  if (input.kind === "rollout-removed") {
    if (isUnderWay(state))
      return `rollout ${name}: it is ${state.phase}; promote it or roll it back before it is removed`;
    if (isCooling(state, input.at)) return `rollout ${name}: it was rolled back; it stays until its cooldown ends`;
    return book.filter((other) => other !== state);
  }
  const blocked = input.step === "start" ? whyNotStart(book, state, input.at) : undefined;
  if (blocked !== undefined) return blocked;
  const next = steppedRollout(state, input);
  return typeof next === "string" ? next : book.map((other) => (other === state ? next : other));
}

/** The rollout that decides how a model is routed: one under way, else the one that was promoted last. */
export function rolloutOf(book: RolloutBook, model: string): RolloutState | undefined {
  let promoted: RolloutState | undefined;
  for (const state of book) {
    if (!shareModel(state.plan.model, model)) continue;
    if (isUnderWay(state)) return state;
    if (state.phase === "promoted" && state.at >= (promoted?.at ?? -Infinity)) promoted = state;
  }
  return promoted;
}

function planned(book: RolloutBook, { at, plan }: RolloutPlanned): RolloutBook | string {
  const problems = planProblems(plan);
  if (problems.length > 0) return problems.join("; ");
  if (book.some((state) => state.plan.name === plan.name)) {
    return `name: expected one that no other rollout has, got ${JSON.stringify(plan.name)}`;
  }
  if (book.length >= ROLLOUTS_MAX) return `expected at most ${ROLLOUTS_MAX} rollouts; remove one that has ended`;
  return [...book, plannedRollout(plan, at)];
}

function whyNotStart(book: RolloutBook, { plan }: RolloutState, at: Micros): string | undefined {
  for (const other of book) {
    if (other.plan.name === plan.name || !shareModel(other.plan.model, plan.model)) continue;
    const about = plan.model === "" ? "all models" : `model ${plan.model}`;
    if (isUnderWay(other)) return `rollout ${plan.name}: ${other.plan.name} is ${other.phase} for ${about}`;
    if (isCooling(other, at)) {
      const seconds = Math.ceil((other.at + other.plan.cooldownMicros - at) / MICROS_PER_SECOND);
      return `rollout ${plan.name}: ${other.plan.name} was rolled back for ${about}; its cooldown ends in ${seconds} s`;
    }
  }
  return undefined;
}

function isUnderWay({ phase }: RolloutState): boolean {
  return phase === "running" || phase === "paused";
}

function isCooling({ phase, at: since, plan }: RolloutState, at: Micros): boolean {
  return phase === "rolled-back" && at < since + plan.cooldownMicros;
}

function shareModel(one: string, other: string): boolean {
  return one === "" || other === "" || one === other;
}
