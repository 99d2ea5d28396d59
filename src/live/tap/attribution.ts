import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { RequestArrived } from "#core/input/input.ts";
import { UNOBSERVED } from "#core/request/observed-place.ts";
import type { AnswerHeaders } from "../http/headers.ts";
import { BlocksLearner } from "./blocks-learner.ts";
import type { FollowedInput, FrontListener } from "./front-intake.ts";
import type { HeldIntake } from "./held-intake.ts";
import type { ServedHeader } from "./served-header.ts";

/** Learns where requests went from more than the heads of their answers. */
export interface PlaceLearner extends FrontListener {
  /** Whether it is at work on this request, and will place it or give it up. */
  owns(requestId: string): boolean;
  /** Its place is known. */
  known(requestId: string): void;
}

/** After so many answers in a row whose heads name the engine, the next ones are believed to do so as well. */
const NAMED_IN_A_ROW = 16;

/** Finds out where the other router sent each request, for the router that stands beside it. */
export class Attribution implements FrontListener {
  readonly #held: HeldIntake;
  readonly #served: ServedHeader;
  readonly #learner: PlaceLearner | undefined;
  readonly #blocks = new BlocksLearner();
  #namedInARow = 0;

  constructor(held: HeldIntake, served: ServedHeader, learner?: PlaceLearner) {
    this.#held = held;
    this.#served = served;
    this.#learner = learner;
    held.storedBlocks = (input) =>
      this.#blocks.stored(input, (requestId, endpoint) => this.#stored(requestId, endpoint));
  }

  arrived(input: RequestArrived): void {
    this.#held.arrived(input);
    if (this.#namedInARow >= NAMED_IN_A_ROW) return;
    this.#blocks.arrived(input);
    this.#learner?.arrived(input);
  }

  followed(input: FollowedInput): void {
    const { requestId } = input;
    const isOwned = this.#learner?.owns(requestId) === true;
    this.#held.followed(input);
    if (input.kind === "request-finished") this.#blocks.forget(requestId);
    if (isOwned) this.#learner?.followed(input);
    else if (input.kind === "request-finished" && this.#held.awaits(requestId))
      this.#held.placed(requestId, UNOBSERVED);
  }

  /** The head of its answer came; `upstream` is the address that a proxy had it from, where it states that. */
  answered(requestId: string, headers: AnswerHeaders, upstream?: string): void {
    if (!this.#held.awaits(requestId)) return;
    const [endpoint, ...others] = this.#served.endpointsOf(headers, upstream);
    if (endpoint === undefined) {
      this.#namedInARow = 0;
      return;
    }
    this.#namedInARow++;
    this.#blocks.forget(requestId);
    this.#learner?.known(requestId);
    this.#held.placed(requestId, { endpoint, by: "header", sure: 1 / (1 + others.length) });
  }

  /** Only this request ends with a block that an engine stored. */
  #stored(requestId: string, endpoint: EndpointId): void {
    if (!this.#held.awaits(requestId)) return;
    this.#learner?.known(requestId);
    this.#held.placed(requestId, { endpoint, by: "kv-events", sure: 1 });
  }
}
