import type { EndpointId } from "#core/endpoint/endpoint.ts";
import { type Trouble, type TroubleKind, troubleSince } from "#core/path/wait-verdict.ts";
import type { Micros } from "#core/base/units.ts";
import type { EndpointDirectory, EndpointEntry } from "../../endpoints/endpoint-directory.ts";
import type { AttemptWatch } from "../../keeper/attempt-watch.ts";

/** Where it is known how endpoints fare, and where it counts what attempts there show of them. */
export interface WatchedEndpoints {
  readonly directory: Pick<EndpointDirectory, "get">;
  readonly hangs: AttemptWatch;
}

/** What came of one attempt and when: for the limits of silence, and for the judge of its endpoint. */
export class AttemptSigns {
  readonly #watched: WatchedEndpoints;
  readonly #endpoint: EndpointId;
  readonly #stream: boolean;
  readonly sentAt: Micros;
  /** Of its prompt, to be computed there before a first token. */
  readonly #promptTokens: number;
  /** Set by every piece, cleared by every sweep. */
  #active = false;
  #quietSince: Micros;
  #trouble: Trouble | undefined;

  constructor(watched: WatchedEndpoints, endpoint: EndpointId, sentAt: Micros, stream: boolean, promptTokens = 0) {
    this.#watched = watched;
    this.#endpoint = endpoint;
    this.#stream = stream;
    this.sentAt = sentAt;
    this.#promptTokens = promptTokens;
    this.#quietSince = sentAt;
  }

  /** A piece of an answer came. */
  alive(): void {
    this.#active = true;
  }

  /**
   * How long nothing came that could have been seen. An attempt that is not read from, for its client does not read,
   * waits for nothing; one that has a token waits for the next one.
   */
  sweep(at: Micros, reads: boolean, hasToken = false): Micros {
    const { hangs } = this.#watched;
    this.#quietSince = Math.max(this.#quietSince, hangs.stoodStillUntil);
    if (this.#active) {
      this.#quietSince = at;
      hangs.answered(this.#endpoint, at);
    } else if (reads) {
      const kind = !this.#stream ? "whole" : hasToken ? "begun" : "stream";
      hangs.waits(this.#endpoint, kind, this.#quietSince, hasToken ? 0 : this.#promptTokens);
    }
    this.#active = false;
    return at - this.#quietSince;
  }

  /** The endpoint's trouble as a sweep finds it. */
  trouble(at: Micros): Trouble | undefined {
    const { directory, hangs } = this.#watched;
    const entry = directory.get(this.#endpoint);
    const kind = hangs.isHung(this.#endpoint) ? "hung" : undefined;
    const found = troubleOf(entry, kind) ?? (hangs.isDraining(this.#endpoint) ? "draining" : undefined);
    this.#trouble = troubleSince(this.#trouble, found, at);
    return this.#trouble;
  }

  /** The answer is complete. */
  completed(firstTokenAt: Micros | undefined, at: Micros): void {
    const { hangs } = this.#watched;
    hangs.answered(this.#endpoint, at);
    if (firstTokenAt !== undefined) hangs.took(this.#endpoint, "stream", firstTokenAt - this.sentAt);
    else if (!this.#stream) hangs.took(this.#endpoint, "whole", at - this.sentAt);
  }
}

/** The most serious one. */
function troubleOf(entry: EndpointEntry | undefined, hung: "hung" | undefined): TroubleKind | undefined {
  if (entry?.state === "lost") return "lost";
  if (hung !== undefined || entry === undefined) return hung;
  return entry.asleep === true ? "asleep" : entry.evicts === true ? "evicted" : undefined;
}
