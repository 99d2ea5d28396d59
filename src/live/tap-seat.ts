import type { Placed, Routed } from "#core/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { AskingInput, Input, RequestAgain } from "#core/input.ts";
import type { RouteRequest } from "#core/request.ts";
import {
  type AfterFault,
  afterFault,
  type AttemptHost,
  type FailedStage,
  type StageFailed,
} from "#core/retry/after-fault.ts";
import { afterBreak, type BrokenAnswer } from "#core/retry/after-break.ts";
import { askHedge, type HedgeHost } from "#core/retry/ask-hedge.ts";
import { HedgeBudget, type HedgeOptions } from "#core/retry/hedge-budget.ts";
import { type RetryOptions, RetryPolicy } from "#core/retry/retry-policy.ts";
import { type Taker, takerOf } from "#core/retry/wait-verdict.ts";
import { QueueTurns } from "./admission/queue-turns.ts";
import { nowMicros } from "./clock.ts";
import { countUp, type GatewayCounters } from "./metrics/gateway-counters.ts";
import type { OnDecided, LeavingAttempt, RouterSeat } from "./router-seat.ts";
import type { RouterTap } from "./router-tap.ts";
import { type CountedPrompt, decisiveText } from "./status/decisive.ts";

export interface TapSeatOptions {
  readonly tap: RouterTap;
  readonly retries: RetryOptions;
  readonly hedge: HedgeOptions;
  readonly counters: Pick<GatewayCounters, "queued">;
}

/** The router, what retries share, and who waits for a turn. */
export class TapSeat implements RouterSeat {
  readonly #tap: RouterTap;
  readonly #counters: TapSeatOptions["counters"];
  readonly #turns: QueueTurns;
  /** What retries of all requests share. */
  readonly #host: AttemptHost & HedgeHost;
  readonly #retries: RetryPolicy;
  readonly #hedges: HedgeBudget;

  constructor({ tap, retries, hedge, counters }: TapSeatOptions) {
    this.#tap = tap;
    this.#counters = counters;
    this.#turns = new QueueTurns(tap);
    this.#retries = new RetryPolicy(retries);
    this.#hedges = new HedgeBudget(hedge);
    function accept(input: StageFailed): void;
    function accept(input: RequestAgain): Placed;
    function accept(input: StageFailed | RequestAgain): Placed | undefined {
      return tap.accept(input) as Placed | undefined;
    }
    const hasTaker = (requestId: string): boolean => tap.router.hasTaker(nowMicros(), requestId);
    this.#host = { retries: this.#retries, hedges: this.#hedges, now: nowMicros, accept, hasTaker };
  }

  arrive(request: RouteRequest, decided: OnDecided): void {
    const decision = this.#tap.accept({ kind: "request-arrived", at: nowMicros(), request });
    if (decision.kind !== "queued") return decided(decision, 0);
    countUp(this.#counters.queued, decision.reason);
    this.#turns.wait(request.id, (placed) => decided(placed, placed.at - decision.at));
  }

  accept(input: Exclude<Input, AskingInput>): void {
    this.#tap.accept(input);
  }

  again(input: RequestAgain): Placed {
    return this.#tap.accept(input);
  }

  afterFault(requestId: string, fault: Fault, attempts: number, stage?: FailedStage): AfterFault {
    return afterFault(this.#host, requestId, fault, attempts, stage);
  }

  afterBreak(broken: BrokenAnswer): AfterFault {
    return afterBreak(this.#host, broken);
  }

  hedge(requestId: string): AfterFault {
    return askHedge(this.#host, requestId);
  }

  takerOf({ requestId, kind, times, continues }: LeavingAttempt): Taker {
    const denied = continues ? this.#retries.continuationDenial("hung", times) : this.#retries.denial("hung", times);
    return takerOf(denied, () => this.#tap.router.hasTaker(nowMicros(), requestId, kind));
  }

  earnRetry(): void {
    this.#retries.earn();
    this.#hedges.earn();
  }

  refundContinuation(): void {
    this.#retries.refund();
  }

  changeRetries(options: RetryOptions, hedge: HedgeOptions): void {
    this.#retries.change(options);
    this.#hedges.change(hedge);
  }

  whyOf(decision: Routed, prompt: CountedPrompt): string {
    return decisiveText(decision, prompt);
  }

  stop(): void {
    this.#turns.stop();
  }
}
