import type { Placed } from "#core/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { AskingInput, Input, RequestAgain } from "#core/input.ts";
import type { RouteRequest } from "#core/request.ts";
import type { BrokenAnswer } from "#core/retry/after-break.ts";
import type { AfterFault, FailedStage } from "#core/retry/after-fault.ts";
import type { Taker } from "#core/retry/wait-verdict.ts";
import type { HedgeOptions } from "#core/retry/hedge-budget.ts";
import type { RetryOptions } from "#core/retry/retry-policy.ts";
import type { CountedPrompt } from "../status/decisive.ts";
import type { OnDecided, LeavingAttempt, RouterSeat } from "../router-seat.ts";
import type { Routed } from "#core/decision.ts";

/** Is notified of a request's decisions and of how its attempts ended. */
export interface SeatListener {
  deciding(requestId: string): void;
  decided(requestId: string, decision: Placed, queuedMicros: number): void;
  attemptFailed(requestId: string, fault: Fault): void;
  firstToken(requestId: string): void;
}

/** A router whose decisions somebody watches. */
export class TracedSeat implements RouterSeat {
  readonly #seat: RouterSeat;
  readonly #listener: SeatListener;

  constructor(seat: RouterSeat, listener: SeatListener) {
    this.#seat = seat;
    this.#listener = listener;
  }

  arrive(request: RouteRequest, decided: OnDecided): void {
    this.#listener.deciding(request.id);
    const watched: OnDecided = (decision, queuedMicros) => {
      this.#listener.decided(request.id, decision, queuedMicros);
      decided(decision, queuedMicros);
    };
    this.#seat.arrive(request, watched);
  }

  accept(input: Exclude<Input, AskingInput>): void {
    if (input.kind === "first-token") this.#listener.firstToken(input.requestId);
    this.#seat.accept(input);
  }

  again(input: RequestAgain): Placed {
    this.#listener.deciding(input.requestId);
    const decision = this.#seat.again(input);
    this.#listener.decided(input.requestId, decision, 0);
    return decision;
  }

  afterFault(requestId: string, fault: Fault, attempts: number, stage?: FailedStage): AfterFault {
    return this.#after(requestId, fault, () => this.#seat.afterFault(requestId, fault, attempts, stage));
  }

  afterBreak(broken: BrokenAnswer): AfterFault {
    return this.#after(broken.requestId, broken.fault, () => this.#seat.afterBreak(broken));
  }

  hedge(requestId: string): AfterFault {
    this.#listener.deciding(requestId);
    const after = this.#seat.hedge(requestId);
    if (after.kind === "retry") this.#listener.decided(requestId, after.decision, 0);
    return after;
  }

  takerOf(leaving: LeavingAttempt): Taker {
    return this.#seat.takerOf(leaving);
  }

  earnRetry(): void {
    this.#seat.earnRetry();
  }

  refundContinuation(): void {
    this.#seat.refundContinuation();
  }

  changeRetries(options: RetryOptions, hedge: HedgeOptions): void {
    this.#seat.changeRetries(options, hedge);
  }

  whyOf(decision: Routed, prompt: CountedPrompt): string {
    return this.#seat.whyOf(decision, prompt);
  }

  stop(): void {
    this.#seat.stop();
  }

  #after(requestId: string, fault: Fault, ask: () => AfterFault): AfterFault {
    this.#listener.attemptFailed(requestId, fault);
    this.#listener.deciding(requestId);
    const after = ask();
    if (after.kind === "retry") this.#listener.decided(requestId, after.decision, 0);
    return after;
  }
}
