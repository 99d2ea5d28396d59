import { assert } from "../base/assert.ts";
import type { KeptReason } from "../request/cascade-input.ts";
import type { CascadeLimits, CascadeStep } from "./cascade-spec.ts";

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
