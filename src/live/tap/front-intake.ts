import { assert } from "#core/base/assert.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Decision, Placed, Routed } from "#core/input/decision.ts";
import type { AskingInput, Input, RequestAgain } from "#core/input/input.ts";
import type { Router } from "#core/router.ts";
import { Intake } from "../base/intake.ts";

/** Is notified of what becomes of requests. What it throws is its own affair: the requests go on. */
export interface FrontListener {
  arrived(input: Extract<Input, { readonly kind: "request-arrived" }>): void;
  followed(input: FollowedInput): void;
}

/** What becomes of a request that another router has, whatever that does with it. */
export type FollowedInput = Extract<
  Input,
  { readonly kind: "first-token" | "progress" | "request-finished" | "answer-known" }
>;

/**
 * The way to the router for a gateway in front of another one: every request goes there, whatever is known, and nothing
 * is decided, so that nothing here can refuse one. Whoever observes is notified of requests alone.
 */
export class FrontIntake extends Intake {
  readonly #listener: FrontListener;
  readonly #failed: (error: unknown) => void;
  readonly #other: EndpointId;
  #sequence = 0;

  /**
   * `idle` has no endpoint and gets no input: it answers that nobody else may take a request. `other` is the other router,
   * among the endpoints of this gateway.
   */
  constructor(idle: Router, listener: FrontListener, failed: (error: unknown) => void, other: EndpointId) {
    super(idle);
    this.#other = other;
    this.#listener = listener;
    this.#failed = failed;
  }

  override accept(input: RequestAgain): Placed;
  override accept(input: AskingInput): Decision;
  override accept(input: Input): Decision | undefined;
  override accept(input: Input): Decision | undefined {
    this.lastAt = input.at;
    try {
      if (input.kind === "request-arrived") this.#listener.arrived(input);
      else if (isFollowed(input)) this.#listener.followed(input);
    } catch (error) {
      this.#failed(error);
    }
    if (input.kind === "request-arrived") return this.#sent(input.at, input.request.id);
    // One attempt is all that a request has here; the other router tries again where it wants to.
    assert(input.kind !== "request-retried", "a request is sent to the other router once");
    return undefined;
  }

  #sent(at: number, requestId: string): Routed {
    return {
      kind: "routed",
      at,
      sequence: this.#sequence++,
      requestId,
      attempt: 1,
      profile: "",
      policyVersion: 1,
      endpoint: this.#other,
      reason: "passed-on",
      hitTokens: 0,
      prefixSource: "approximate",
      usedLedger: false,
      breakdown: NOBODY,
    };
  }
}

const NOBODY = { candidates: [], scorers: [], totals: new Float64Array(0), values: new Float64Array(0), clamped: 0 };

function isFollowed(input: Input): input is FollowedInput {
  const { kind } = input;
  return kind === "first-token" || kind === "progress" || kind === "request-finished" || kind === "answer-known";
}
