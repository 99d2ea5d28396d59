import type { Input } from "#core/input/input.ts";
import { RecentMap } from "#core/base/recent-map.ts";
import type { RouteRequest } from "#core/request/request.ts";
import { isStageInput } from "#core/request/stage-inputs.ts";

/** Answers follow within moments, or never. */
const AWAITED_MAX = 65_536;

/**
 * Decides, input by input, what stays of a trace from which whole requests are taken out: of a request that stays all
 * inputs stay, of another none does. What concerns the fleet stays.
 */
export class KeptRequests {
  readonly #keep: (request: RouteRequest, ordinal: number) => boolean;
  readonly #inFlight = new Set<string>();
  /** Requests that stay and whose answers follow their ends. */
  readonly #awaited = new RecentMap<string, true>(AWAITED_MAX);
  requestsSeen = 0;
  requestsKept = 0;

  /** `keep` is asked once a request, in order of arrival; ordinals count from 0. */
  constructor(keep: (request: RouteRequest, ordinal: number) => boolean) {
    this.#keep = keep;
  }

  /** Requests that stay and have not ended. */
  get inFlight(): number {
    return this.#inFlight.size;
  }

  stays(input: Input): boolean {
    if (isStageInput(input)) return this.#inFlight.has(input.requestId);
    switch (input.kind) {
      case "request-arrived": {
        if (!this.#keep(input.request, this.requestsSeen++)) return false;
        this.#inFlight.add(input.request.id);
        this.requestsKept++;
        return true;
      }
      case "first-token":
      case "progress":
      case "attempt-failed":
      case "prefill-finished":
      case "prefill-failed":
      case "transfer-failed":
      case "request-retried":
      case "request-moved":
      case "request-released":
        return this.#inFlight.has(input.requestId);
      case "request-finished":
        if (!this.#inFlight.delete(input.requestId)) return false;
        if (input.answerFollows === true) this.#awaited.set(input.requestId, true);
        return true;
      case "answer-known": {
        const stays = this.#awaited.get(input.requestId) === true;
        this.#awaited.delete(input.requestId);
        return stays;
      }
      case "endpoint-joined":
      case "endpoint-changed":
      case "endpoint-left":
      case "endpoint-cordoned":
      case "endpoint-uncordoned":
      case "endpoint-checked":
      case "endpoint-slept":
      case "endpoint-suspended":
      case "endpoint-resumed":
      case "profile-changed":
      case "policy-changed":
      case "rollout-planned":
      case "rollout-step":
      case "rollout-removed":
      case "rollout-restored":
      case "rollout-look":
      case "rollout-predicted":
      case "rollout-shared":
      case "sessions-restored":
      case "block-size-changed":
      case "load-observed":
      case "blocks-stored":
      case "blocks-removed":
      case "blocks-cleared":
      case "peer-reported":
      case "peer-left":
      case "kv-events-alive":
      case "kv-events-missed":
      case "kv-events-lost":
        return true;
    }
  }
}
