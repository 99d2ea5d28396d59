import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { RequestTable } from "#core/base/request-table.ts";
import { asksForStandby } from "#core/request/stage-inputs.ts";
import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { IntakeListener } from "../base/intake.ts";
import type { Came, Followed } from "./what-came.ts";

/** Decisions of a second that are shown, and beside them refusals, waits and retries. */
const PER_SECOND = 4;
/** Kept for who opens one: a minute of them where there are as many as may be. */
const KEPT = 2 * 60 * PER_SECOND;
const SPAN_MICROS = MICROS_PER_SECOND / PER_SECOND;

/**
 * A few decisions of every second for people to look at: all of a quiet gateway, and of a busy one as many as stay long
 * enough to be read. Refusals, waits and retries have room of their own.
 */
export class ShownDecisions implements IntakeListener {
  readonly #ring = new DecisionRing(KEPT);
  #usualUntil: Micros = -Infinity;
  #unusualUntil: Micros = -Infinity;

  accepted(input: Input, decision: Decision | undefined, decisionMicros: number): void {
    const isKept = decision !== undefined && this.#isKept(decision);
    this.#ring.accepted(input, decision, decisionMicros, isKept);
  }

  #isKept({ kind, attempt, at }: Decision): boolean {
    if (kind !== "routed" || attempt > 1) {
      if (at < this.#unusualUntil) return false;
      this.#unusualUntil = at + SPAN_MICROS;
    } else {
      if (at < this.#usualUntil) return false;
      this.#usualUntil = at + SPAN_MICROS;
    }
    return true;
  }

  /** At most `count` of those after the sequence, newest first. */
  after(sequence: number, count: number): KeptDecision[] {
    return this.#ring.last(count).filter(({ decision }) => decision.sequence > sequence);
  }

  get(sequence: number): KeptDecision | undefined {
    return this.#ring.find(sequence);
  }
}

/** A decision, what of its request may be shown, and what came of it. */
export interface KeptDecision extends Followed {
  /** Undefined for a retry, whose first decision has it. */
  readonly model: string | undefined;
  readonly promptTokens: number | undefined;
  readonly promptTokensExact?: boolean | undefined;
  readonly decisionMicros: number;
}

/** Remembers the last decisions, at most `max` of them, and what came of them. */
export class DecisionRing implements IntakeListener {
  readonly #kept: KeptDecision[] = [];
  readonly #following = new Following();
  readonly #max: number;
  #next = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#kept.length;
  }

  accepted(input: Input, decision: Decision | undefined, decisionMicros: number, isKept = true): void {
    if (this.#max === 0) return;
    if (decision === undefined) return this.#following.observe(input);
    // Of two that answer side by side the first one's answer counts from its own decision.
    const isFirst = input.kind === "request-arrived" || !asksForStandby(input);
    if (!isKept) return isFirst ? this.#following.decided(decision, undefined) : undefined;
    const request = input.kind === "request-arrived" ? input.request : undefined;
    const { model, promptTokens, promptTokensExact, sequences = 1 } = request ?? {};
    const last = this.#kept[this.#next];
    if (last !== undefined) this.#following.forget(last);
    const kept = {
      decision,
      model,
      promptTokens,
      promptTokensExact,
      decisionMicros,
      came: sequences > 1 ? { sequences } : {},
    };
    this.#kept[this.#next] = kept;
    if (isFirst) this.#following.decided(decision, kept);
    this.#next = (this.#next + 1) % this.#max;
  }

  /** The last `count` decisions, newest first. */
  last(count: number): KeptDecision[] {
    const { length } = this.#kept;
    const taken = Math.min(count, length);
    return Array.from({ length: taken }, (_, i) => this.#kept[(this.#next - 1 - i + 2 * length) % length]!);
  }

  find(sequence: number): KeptDecision | undefined {
    return this.#kept.find(({ decision }) => decision.sequence === sequence);
  }
}

/** Fills in what came of the decisions that somebody keeps: of each request's latest one. */
class Following {
  readonly #awaited = new RequestTable<Followed>();

  get size(): number {
    return this.#awaited.size;
  }

  /** A decision was made. `kept` is who keeps it, undefined where nobody does. */
  decided({ requestId }: Decision, kept: Followed | undefined): void {
    if (kept?.decision.kind === "routed") this.#awaited.set(requestId, kept);
    else if (this.#awaited.size > 0) this.#awaited.delete(requestId);
  }

  /** Nobody keeps it any more. One that has ended is not awaited: most of all, which saves two look-ups a request. */
  forget(kept: Followed): void {
    if (kept.came.outcome !== undefined) return;
    const { requestId } = kept.decision;
    if (this.#awaited.get(requestId) === kept) this.#awaited.delete(requestId);
  }

  observe(input: Input): void {
    if (this.#awaited.size === 0) return;
    switch (input.kind) {
      case "first-token": {
        const one = this.#awaited.get(input.requestId);
        if (one !== undefined) one.came.firstTokenMicros ??= input.at - one.decision.at;
        return;
      }
      case "attempt-failed":
        this.#ended(input, input.kind);
        return;
      case "request-moved":
        this.#ended(input, "moved");
        return;
      case "request-finished": {
        const one = this.#ended(input, input.outcome);
        if (one === undefined) return;
        if (input.outputTokens !== undefined) one.outputTokens = input.outputTokens;
        if (input.cachedTokens !== undefined) one.cachedTokens = input.cachedTokens;
        return;
      }
      default:
    }
  }

  #ended(input: Input & { readonly requestId: string }, outcome: NonNullable<Came["outcome"]>): Came | undefined {
    const one = this.#awaited.take(input.requestId);
    if (one === undefined) return undefined;
    one.came.endMicros = input.at - one.decision.at;
    one.came.outcome = outcome;
    return one.came;
  }
}
