import type { Input } from "#core/input.ts";
import type { RouteRequest } from "#core/request.ts";

/**
 * Decides, input by input, what stays of a trace from which whole requests are taken out: of a request that stays all
 * inputs stay, of another none does. What concerns the fleet stays.
 */
export class KeptRequests {
  readonly #keep: (request: RouteRequest, ordinal: number) => boolean;
  readonly #inFlight = new Set<string>();
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
      case "request-retried":
        return this.#inFlight.has(input.requestId);
      case "request-finished":
        return this.#inFlight.delete(input.requestId);
      case "endpoint-joined":
      case "endpoint-changed":
      case "endpoint-left":
      case "endpoint-cordoned":
      case "endpoint-uncordoned":
      case "endpoint-suspended":
      case "endpoint-resumed":
      case "profile-changed":
      case "block-size-changed":
      case "load-observed":
      case "blocks-stored":
      case "blocks-removed":
      case "blocks-cleared":
        return true;
    }
  }
}
