import { assert } from "../../base/assert.ts";
import type { KeptReason } from "../../request/cascade-input.ts";

/** A model of a cascade. */
export interface CascadeStep {
  readonly model: string;
  /**
   * Least mean log-probability (natural logarithm, at most 0) of an answer's tokens with which it is kept; one below goes
   * to the next model. Absent of the last step, whose answers are kept.
   */
  readonly logprobMin?: number;
}

/** Models that are asked one after another, the smallest first, until one is sure of its answer. */
export interface CascadeSpec {
  /** What clients ask for. */
  readonly name: string;
  /** Two or more. */
  readonly steps: readonly CascadeStep[];
  /** Tokens of an answer that are looked at; Infinity for all. A stream is held back until then. */
  readonly judgedTokensMax: number;
}

/** Over all requests together. */
export interface CascadeLimits {
  /** Most requests under way at a later model than their first; beyond it answers are kept however low their confidence. */
  readonly escalationsInFlightMax: number;
  /** Bytes of answers that are held back; beyond it they are let go, unjudged. */
  readonly heldBytesMax: number;
}

/** Where the answers of all cascades are judged, within bounds that they share. */
export class CascadeJudge {
  readonly limits: CascadeLimits;
  /** Requests under way at a model behind their first one. */
  escalationsInFlight = 0;
  /** Bytes of answers that are held back. */
  heldBytes = 0;

  constructor(limits: CascadeLimits) {
    this.limits = limits;
  }

  /** Why an answer of so many tokens with such a mean is kept; undefined where the next model is to be asked. */
  keeps({ logprobMin }: CascadeStep, meanLogprob: number, tokens: number): KeptReason | undefined {
    if (tokens === 0) return "unread";
    if (logprobMin === undefined || meanLogprob >= logprobMin) return "sure";
    return this.escalationsInFlight >= this.limits.escalationsInFlightMax ? "full" : undefined;
  }

  /** False where there is no room for them. */
  hold(bytes: number): boolean {
    if (this.heldBytes + bytes > this.limits.heldBytesMax) return false;
    this.heldBytes += bytes;
    return true;
  }

  letGo(bytes: number): void {
    this.heldBytes -= bytes;
    assert(this.heldBytes >= 0, "bytes are let go once");
  }

  /** A request left its first model. */
  began(): void {
    this.escalationsInFlight++;
  }

  /** It is over. */
  ended(): void {
    this.escalationsInFlight--;
    assert(this.escalationsInFlight >= 0, "an escalation ends once");
  }
}
