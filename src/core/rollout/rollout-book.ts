import { MICROS_PER_SECOND, type Micros } from "../base/units.ts";
import { rulesProblems } from "./judge/judge-rules.ts";
import type { RolloutPlanned, RolloutRemoved, RolloutRestored } from "./rollout-input.ts";
import { planProblems, type RolloutPlan } from "./plan/rollout-plan.ts";
import { plannedRollout, type RolloutState, type RolloutStep, steppedRollout } from "./rollout-state.ts";

/** What changes the book. */
export type BookInput = RolloutPlanned | RolloutStep | RolloutRemoved | RolloutRestored;

/** All rollouts by name: plain data. */
export type RolloutBook = readonly RolloutState[];

export const EMPTY_BOOK: RolloutBook = [];

/** Rollouts that are kept, ended ones included. */
export const ROLLOUTS_MAX = 64;

/**
 * The book after an input; a text that states why it is refused where it is, and then nothing has changed. No two rollouts
 * of one model are under way together; one that is for all models stands in the way of every other.
 */
export function bookAfter(book: RolloutBook, input: BookInput): RolloutBook | string {
  if (input.kind === "rollout-planned") return planned(book, input);
  if (input.kind === "rollout-restored") return restored(book, input);
  const name = input.rollout;
  const state = book.find(({ plan }) => plan.name === name);
  if (state === undefined) {
    const known = book.length === 0 ? "there is none" : `expected ${book.map(({ plan }) => plan.name).join(", ")}`;
    return `rollout ${JSON.stringify(name)}: ${known}`;
  }
  if (input.kind === "rollout-removed") {
    if (isRolloutUnderWay(state))
      return `rollout ${name}: it is ${state.phase}; promote it or roll it back before it is removed`;
    if (isCooling(state, input.at)) return `rollout ${name}: it was rolled back; it stays until its cooldown ends`;
    return book.filter((other) => other !== state);
  }
  const blocked = input.step === "start" ? whyNotStart(book, state, input.at) : undefined;
  if (blocked !== undefined) return blocked;
  const next = steppedRollout(state, input);
  return typeof next === "string" ? next : book.map((other) => (other === state ? next : other));
}

/** The rollout under way that decides how a model is routed; where there is none, the policy decides alone. */
export function rolloutOf(book: RolloutBook, model: string): RolloutState | undefined {
  return book.find((state) => isRolloutUnderWay(state) && shareModel(state.plan.model, model));
}

function restored(book: RolloutBook, { state, rules }: RolloutRestored): RolloutBook | string {
  const { plan } = state;
  const problems = [...planProblems(plan), ...rulesProblems(rules, plan)];
  if (problems.length > 0) return problems.join("; ");
  const others = book.filter((one) => one.plan.name !== plan.name);
  const rival = isRolloutUnderWay(state) ? rolloutOf(others, plan.model) : undefined;
  if (rival !== undefined) return `rollout ${plan.name}: ${rival.plan.name} is ${rival.phase}`;
  if (others.length >= ROLLOUTS_MAX) return TOO_MANY;
  return [...others, state];
}

const TOO_MANY = `expected at most ${ROLLOUTS_MAX} rollouts; remove one that has ended`;

function planned(book: RolloutBook, { at, plan, rules, profiles }: RolloutPlanned): RolloutBook | string {
  const problems = [...planProblems(plan), ...rulesProblems(rules, plan)];
  plan.arms.forEach(({ profile }, i) => {
    if (profile === "" || Object.hasOwn(profiles, profile)) return;
    problems.push(`arms[${i}].profile: expected one of the rollout's profiles, got ${JSON.stringify(profile)}`);
  });
  if (problems.length > 0) return problems.join("; ");
  if (book.some((state) => state.plan.name === plan.name)) {
    return `name: expected one that no other rollout has, got ${JSON.stringify(plan.name)}`;
  }
  if (book.length >= ROLLOUTS_MAX) return TOO_MANY;
  return [...book, plannedRollout(plan, at)];
}

/** What stands in the way of another rollout: one that is planned, under way or cools down, of its model. */
export function rivalOf(book: RolloutBook, plan: RolloutPlan, at: Micros): string | undefined {
  const planned = book.find((one) => one.phase === "planned" && isRival(one, plan));
  if (planned !== undefined) return `rollout ${plan.name}: ${planned.plan.name} is planned for ${aboutText(plan)}`;
  return whyNotStart(book, plannedRollout(plan, at), at);
}

function isRival({ plan }: RolloutState, { name, model }: RolloutPlan): boolean {
  return plan.name !== name && shareModel(plan.model, model);
}

function aboutText({ model }: RolloutPlan): string {
  return model === "" ? "all models" : `model ${model}`;
}

function whyNotStart(book: RolloutBook, { plan }: RolloutState, at: Micros): string | undefined {
  for (const other of book) {
    if (!isRival(other, plan)) continue;
    const about = aboutText(plan);
    if (isRolloutUnderWay(other)) return `rollout ${plan.name}: ${other.plan.name} is ${other.phase} for ${about}`;
    if (isCooling(other, at)) {
      const seconds = Math.ceil((other.at + other.plan.cooldownMicros - at) / MICROS_PER_SECOND);
      return `rollout ${plan.name}: ${other.plan.name} was rolled back for ${about}; its cooldown ends in ${seconds} s`;
    }
  }
  return undefined;
}

/** Whether requests have arms, or will have them again. */
export function isRolloutUnderWay({ phase }: Pick<RolloutState, "phase">): boolean {
  return phase === "running" || phase === "paused";
}

/** Whether a plan is about a model's requests. */
export function isAbout(plan: RolloutPlan, model: string): boolean {
  return shareModel(plan.model, model);
}

function isCooling({ phase, at: since, plan }: RolloutState, at: Micros): boolean {
  return phase === "rolled-back" && at < since + plan.cooldownMicros;
}

function shareModel(one: string, other: string): boolean {
  return one === "" || other === "" || one === other;
}
