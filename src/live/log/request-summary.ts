import type { Outcome } from "#core/endpoint/outcome.ts";

/** How one request went, reported once when it is over. No prompt, no answer, no key. */
export interface RequestSummary {
  readonly requestId: string;
  /** The same, made unique: as the router knows it; absent where somebody else carries the request. */
  readonly routeId?: string;
  readonly method: string;
  /** The route's pattern, from a closed set: "/v1/chat/completions", "/v1/audio/*". */
  readonly route: string;
  /** Served name of the model; "" when the request named none that is served. */
  readonly model: string;
  /** Who asked: a name that its key is bound to, or a keyed digest; "" where that is not known. */
  readonly tenant: string;
  /** The endpoint that answered last; "" when none did. */
  readonly endpoint: string;
  /** The one that computed the prompt, where that was another one. */
  readonly prefillEndpoint?: string;
  /** Profile that decided; "" where no decision was made. */
  readonly profile: string;
  /** Reason of the last decision, or of the gateway's own error. */
  readonly reason: string;
  readonly status: number;
  readonly outcome: Outcome;
  readonly stream: boolean;
  readonly attempts: number;
  /** Decision to first non-empty token; undefined where none came. Whole body for answers that do not stream. */
  readonly ttftMicros: number | undefined;
  /** Mean time per output token after the first; undefined below two tokens or where the engine did not count. */
  readonly tpotMicros: number | undefined;
  /** Waited for its turn; 0 where it did not. */
  readonly queuedMicros: number;
  /** Request read to last byte. */
  readonly e2eMicros: number;
  readonly promptTokens: number | undefined;
  readonly cachedTokens: number | undefined;
  readonly outputTokens: number | undefined;
  /** The router's own belief at decision time. */
  readonly hitTokens: number;
}
