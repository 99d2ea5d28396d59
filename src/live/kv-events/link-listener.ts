import type { KvEventsLostReason } from "#core/endpoint/knowledge.ts";

/** Who is given what one publisher sends, in its order. */
export interface LinkListener {
  /** Messages come from now on. `isComplete`: from the publisher's first one on. */
  alive(isComplete: boolean): void;
  /** One message. Throws where it cannot be read. */
  message(payload: Uint8Array): Promise<void> | void;
  /** So many messages, at least 1, are missing for good before the next one. */
  missed(messages: number): void;
  /** Another publisher began in its place: its engine was started anew. */
  restarted(): void;
  lost(reason: KvEventsLostReason): void;
}

export interface LinkTimes {
  /** Bound on each answer of a replay. */
  readonly replayMillis: number;
  /** A publisher that is back so soon was not lost. */
  readonly reconnectMillis: number;
  /** First pause before a publisher is connected to again, doubled up to the longest one. */
  readonly retryMillis: number;
  readonly retryMillisMax: number;
  /** Between two signs of life on an idle connection; three without an answer end it. */
  readonly heartbeatMillis: number;
}

export const LINK_TIMES: LinkTimes = {
  replayMillis: 1_000,
  reconnectMillis: 1_000,
  retryMillis: 100,
  retryMillisMax: 5_000,
  heartbeatMillis: 1_000,
};

/** What a link counted since it was made. */
export interface LinkCounts {
  messages: number;
  bytes: number;
  /** Messages that a replay had brought already. */
  seen: number;
  gaps: number;
  /** Gaps that a replay closed. */
  closed: number;
  /** Messages that nothing brought back. */
  missed: number;
  restarts: number;
  disconnects: number;
  undecodable: number;
}
