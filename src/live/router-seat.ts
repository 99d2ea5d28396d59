import type { Placed, Routed } from "#core/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { AskingInput, Input, RequestAgain } from "#core/input.ts";
import type { RouteRequest } from "#core/request.ts";
import type { AfterFault, FailedStage } from "#core/retry/after-fault.ts";
import type { BrokenAnswer } from "#core/retry/after-break.ts";
import type { HedgeOptions } from "#core/retry/hedge-budget.ts";
import type { RetryOptions } from "#core/retry/retry-policy.ts";
import type { Taker, TakerKind } from "#core/retry/wait-verdict.ts";
import type { Micros } from "#core/units.ts";
import type { CountedPrompt } from "./status/decisive.ts";

/** Notified of the decision on a request, and how long it waited for its turn. It must not throw. */
export type OnDecided = (decision: Placed, queuedMicros: Micros) => void;

/** An attempt that may have to go elsewhere. */
export interface LeavingAttempt {
  readonly requestId: string;
  /** Who is asked for. */
  readonly kind: TakerKind;
  /** Attempts so far; where an answer goes on that broke, the times that it did. */
  readonly times: number;
  readonly continues: boolean;
}

/**
 * The router as the path of a request sees it. What is asked about a request in flight is answered at once; its arrival is
 * when its turn has come.
 */
export interface RouterSeat {
  arrive(request: RouteRequest, decided: OnDecided): void;
  accept(input: Exclude<Input, AskingInput>): void;
  /** Asks for another endpoint for a request in flight. */
  again(input: RequestAgain): Placed;
  /** The attempt number `attempts` failed before its client had a byte. */
  afterFault(requestId: string, fault: Fault, attempts: number, stage?: FailedStage): AfterFault;
  /** An answer broke that may go on elsewhere. */
  afterBreak(broken: BrokenAnswer): AfterFault;
  /** The first token of a request is late: whether a second endpoint gets it too, and which. */
  hedge(requestId: string): AfterFault;
  /** Whether somebody else could serve an attempt, and the budget lets it go there. Spends nothing. */
  takerOf(leaving: LeavingAttempt): Taker;
  /** A routed request was sent: it earns its part of a retry. */
  earnRetry(): void;
  /** A continuation made a token. */
  refundContinuation(): void;
  changeRetries(options: RetryOptions, hedge: HedgeOptions): void;
  /** Why a request went where it went, in a line of printable ASCII. */
  whyOf(decision: Routed, prompt: CountedPrompt): string;
  stop(): void;
}
