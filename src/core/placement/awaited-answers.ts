import { RecentRequests } from "../base/request-table.ts";
import type { EndpointState } from "../endpoint/endpoint-state.ts";
import type { Fleet } from "../fleet/fleet.ts";
import type { AnswerKnown, RequestFinished } from "../input/input.ts";
import type { PrefixIndex } from "../prefix/prefix-index.ts";
import { type BlockChain, continued } from "../prompt/block-chain.ts";

/** Ended requests whose answers are awaited; a host that never reports them costs so much memory and no more. */
const AWAITED_MAX = 1_024;

interface Ended {
  readonly state: EndpointState;
  readonly prompt: BlockChain;
}

/** Puts answers behind their prompts in the index: at their requests' end, or later where that announced it. */
export class AwaitedAnswers {
  readonly #fleet: Fleet;
  readonly #index: PrefixIndex;
  readonly #awaited = new RecentRequests<Ended>(AWAITED_MAX);

  constructor(fleet: Fleet, index: PrefixIndex) {
    this.#fleet = fleet;
    this.#index = index;
  }

  /** `state` generated an answer to `prompt`. */
  finished(
    { requestId, answerHashes, answerFollows }: RequestFinished,
    state: EndpointState,
    prompt: BlockChain,
  ): void {
    if (answerFollows === true) this.#awaited.set(requestId, { state, prompt });
    else this.#hold({ state, prompt }, answerHashes);
  }

  /** False where it is not awaited. */
  known({ requestId, answerHashes }: AnswerKnown): boolean {
    const ended = this.#awaited.get(requestId);
    if (ended === undefined) return false;
    this.#awaited.delete(requestId);
    this.#hold(ended, answerHashes);
    return true;
  }

  /** Blocks have another size from now on, which those of the answers awaited do not have. */
  forget(): void {
    this.#awaited.clear();
  }

  #hold({ state, prompt }: Ended, answerHashes: Int32Array | undefined): void {
    // Where the endpoint has left, its slot may be another's.
    if (answerHashes === undefined || this.#fleet.get(state.id) !== state) return;
    this.#index.insert(state.slot, continued(prompt, answerHashes));
  }
}
