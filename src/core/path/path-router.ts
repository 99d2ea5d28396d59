import { assert } from "../base/assert.ts";
import type { Placed, Routed } from "../input/decision.ts";
import type { Fault } from "../endpoint/fault.ts";
import type { AskingInput, Input, RequestAgain } from "../input/input.ts";
import type { Micros } from "../base/units.ts";
import type { StageAsking } from "../request/stage-inputs.ts";
import type { RouteRequest } from "../request/request.ts";
import { type LeavingAttempt, RETRIES, type RetryDenial, type RetryPolicy } from "./retry-policy.ts";
import type { StageBudget, StageKind, StageSettings, StageTerms } from "./stage-kind.ts";
import { type Taker, type TakerKind, takerOf } from "./wait-verdict.ts";

/** Of a stage without a budget. */
const FREE: StageBudget = { share: 0, burst: Infinity };

/** How the router gets to know that an attempt failed. */
export type FailureOf = (at: Micros, requestId: string, fault: Fault) => Exclude<Input, AskingInput>;

/** no-endpoint: none is left that may take the request. */
export type GiveUpReason = RetryDenial | "no-endpoint";

/** Where a request goes next, or why it goes nowhere. */
export type NextPlace =
  | { readonly kind: "retry"; readonly decision: Routed }
  | { readonly kind: "give-up"; readonly why: GiveUpReason };

/** What the router that has a request knows of it. */
export interface RequestKnower {
  /** Undefined when it is not in flight. */
  requestOf(requestId: string): RouteRequest | undefined;
  /** Whether another endpoint that is well may take it. */
  hasTaker(at: Micros, requestId: string, kind: TakerKind): boolean;
}

/** Is notified of a request's decisions and of how its attempts ended. */
export interface PathWatch {
  deciding(requestId: string): void;
  decided(requestId: string, decision: Placed, queuedMicros: Micros): void;
  attemptFailed(requestId: string, fault: Fault): void;
  firstToken(requestId: string): void;
}

export interface PathRouterOptions {
  /** Stages that requests may have, and what is set of them. */
  readonly stages: readonly StageKind[];
  readonly settings: StageSettings;
  now(): Micros;
  /** Into the router: what is reported of a request, and what is asked about one. */
  accept(input: Exclude<Input, AskingInput>): void;
  decide(input: RequestAgain): Placed;
  /** The router that has the request: one of several, where they share a simulated fleet. */
  routerOf(requestId: string): RequestKnower;
  readonly watch?: PathWatch | undefined;
}

/**
 * The router as requests on their way reach it, and the budgets that all of them share. A retry, or whatever a stage asks
 * for, is paid for only where it is made.
 */
export class PathRouter {
  readonly #options: PathRouterOptions;
  readonly #retries: RetryPolicy;
  readonly #shared: ReadonlyMap<string, object>;
  readonly #budgets: readonly Budget[];

  constructor(options: PathRouterOptions) {
    this.#options = options;
    const { stages, settings } = options;
    const opened = stages.map((kind) => ({ kind, budget: new Budget(kind.budget, settings) }));
    this.#budgets = opened.map(({ budget }) => budget);
    this.#shared = new Map(opened.map(({ kind, budget }) => [kind.name, kind.open(budget)]));
    this.#retries = this.sharedOf(RETRIES);
  }

  accept(input: Exclude<Input, AskingInput>): void {
    if (input.kind === "first-token") this.#options.watch?.firstToken(input.requestId);
    this.#options.accept(input);
  }

  /** Asks for an endpoint for a request that was let in before. */
  again(input: RequestAgain): Placed {
    const { watch } = this.#options;
    const id = input.requestId;
    watch?.deciding(id);
    const decision = this.#options.decide(input);
    watch?.decided(id, decision, 0);
    return decision;
  }

  /** An attempt failed before its client had a byte: the router gets to know. */
  attemptFailed(requestId: string, fault: Fault, failureOf: FailureOf = attemptFailed): void {
    this.#options.watch?.attemptFailed(requestId, fault);
    this.#options.accept(failureOf(this.now(), requestId, fault));
  }

  /** Where a request goes whose attempt number `attempts` failed, which the router knows. */
  retry(requestId: string, fault: Fault, attempts: number): NextPlace {
    const why = this.denial(requestId, { fault, times: attempts, timesMax: undefined });
    if (why !== undefined) return { kind: "give-up", why };
    return this.#elsewhere({ kind: "request-retried", at: this.now(), requestId });
  }

  /**
   * An answer broke of which its client has a part, and a stage has `input` go on elsewhere with it. Where it does not, the
   * router knows nothing of the break yet.
   */
  afterBreak(input: StageAsking, fault: Fault, denied: RetryDenial | undefined): NextPlace {
    this.#options.watch?.attemptFailed(input.requestId, fault);
    return denied === undefined ? this.#elsewhere(input) : { kind: "give-up", why: denied };
  }

  #elsewhere(input: RequestAgain): NextPlace {
    const decision = this.again(input);
    if (decision.kind === "rejected") return { kind: "give-up", why: "no-endpoint" };
    this.#retries.spend();
    return { kind: "retry", decision };
  }

  now(): Micros {
    return this.#options.now();
  }

  /** Whether another endpoint that is well may take the request. */
  hasTaker(requestId: string, kind: TakerKind): boolean {
    return this.#options.routerOf(requestId).hasTaker(this.now(), requestId, kind);
  }

  /** What requests share of a stage. */
  sharedOf<Shared extends object>({ name }: StageKind<Shared>): Shared {
    const shared = this.#shared.get(name);
    assert(shared !== undefined, "a stage of the router's");
    return shared as Shared;
  }

  /** Whether somebody else could serve an attempt, and the budget lets it go there. Spends nothing. */
  takerOf(requestId: string, kind: TakerKind, counts: Pick<LeavingAttempt, "times" | "timesMax">): Taker {
    const denied = this.denial(requestId, { fault: "hung", ...counts });
    return takerOf(denied, () => this.hasTaker(requestId, kind));
  }

  /** A routed request was sent: it earns its part of a retry, and of what stages spend. */
  sent(): void {
    for (const budget of this.#budgets) budget.earn();
  }

  /** Why it does not go elsewhere, or undefined where it may. Spends nothing. */
  denial(requestId: string, leaving: Omit<LeavingAttempt, "request">): RetryDenial | undefined {
    return this.#retries.denial({ ...leaving, request: this.#options.routerOf(requestId).requestOf(requestId) });
  }

  /** What went on elsewhere made a token: it costs nothing. */
  refund(): void {
    this.#retries.refund();
  }

  /** Other bounds from now on. */
  change(settings: StageSettings): void {
    for (const budget of this.#budgets) budget.change(settings);
  }
}

/** Never more than `burst + share * requests` are spent; what is beyond the burst is not saved up. */
export class Budget implements StageTerms {
  settings: StageSettings;
  readonly #boundsOf: StageKind["budget"];
  #bounds: StageBudget = FREE;
  #saved = Infinity;

  constructor(boundsOf: StageKind["budget"], settings: StageSettings) {
    this.settings = settings;
    this.#boundsOf = boundsOf;
    this.change(settings);
  }

  /** Other settings from now on; what is saved up beyond the new burst is lost, and none is given. */
  change(settings: StageSettings): void {
    this.settings = settings;
    this.#bounds = this.#boundsOf?.(settings) ?? FREE;
    this.#saved = Math.min(this.#bounds.burst, this.#saved);
  }

  get allows(): boolean {
    return this.#saved >= 1;
  }

  /** A request was sent. */
  earn(): void {
    const { burst, share } = this.#bounds;
    this.#saved = Math.min(burst, this.#saved + share);
  }

  spend(): void {
    this.#saved -= 1;
  }

  refund(): void {
    this.#saved = Math.min(this.#bounds.burst, this.#saved + 1);
  }
}

const attemptFailed: FailureOf = (at, requestId, fault) => ({ kind: "attempt-failed", at, requestId, fault });
