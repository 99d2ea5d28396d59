import type { BreakerState } from "#core/endpoint/breaker.ts";
import type { Outcome } from "#core/endpoint/outcome.ts";
import type { Noted, NotedLoad } from "#core/request/noted.ts";
import type { PeerCharged, PeerHeld, PeerNews, PeerUsed, PeerWindow } from "#core/request/peer-news.ts";
import { type BlockChain, EMPTY_CHAIN } from "#core/prompt/block-chain.ts";
import {
  bool,
  type FieldType,
  flag,
  integer,
  listOf,
  maybe,
  number,
  numberOf,
  oneOf,
  optional,
  text,
  usually,
} from "./field-type.ts";
import { record, tagged } from "./record-type.ts";

export const OUTCOMES: readonly Outcome[] = ["ok", "failed", "aborted", "timeout", "refused"];
const BREAKER_STATES: readonly Exclude<BreakerState, "half-open">[] = ["open", "closed"];
/** Of one window of a limit. */
const COUNTS_MAX = 64;

/** In JSON its blocks stand beside the record, which has a mark of them where there are any. */
const chain: FieldType<BlockChain> = {
  as: "chain",
  write: (_value, to) => to.ascii("true"),
  omits: (value) => value.length === 0,
  read: (value, parent, key, beside) =>
    value !== undefined && bool.read(value, parent, key, beside) ? beside.chain() : EMPTY_CHAIN,
  pack: (value, to, beside) => beside.packChain(value, to),
  unpack: (from, beside) => beside.unpackChain(from),
};

const noted = record<Noted>({
  boundTo: optional(text),
  warm: optional(bool),
  turn: flag,
  load: optional(
    record<NotedLoad>({
      effectiveLoad: number,
      requestsInFlight: number,
      prefillTokensQueued: number,
      fresh: usually(false, bool),
    }),
  ),
});

const request = integer(1);
/** At least 1: an engine computes the last token of a prompt again. */
const newTokens = numberOf(1);

/**
 * What routers of the same endpoints report to one another: as JSON in a trace, as bytes over Redis, where a kind is its
 * place in this table. Whoever changes what there is of bytes changes WIRE_VERSION.
 */
export const peerNews = tagged<PeerNews, "kind">(
  "kind",
  {
    charged: record<Omit<PeerCharged, "kind">>({
      request: integer(0),
      attempt: usually(1, integer(1)),
      endpoint: text,
      profile: usually("", text),
      reason: usually("", text),
      model: usually("", text),
      tenant: usually("", text),
      user: optional(text),
      outputTokensMax: optional(number),
      session: usually("", text),
      sequences: usually(1, integer(1)),
      promptTokens: number,
      promptTokensExact: usually(false, bool),
      newTokens,
      blocks: chain,
      prefill: optional(
        record<NonNullable<PeerCharged["prefill"]>>({ endpoint: text, newTokens, noted: optional(noted) }),
      ),
      noted: optional(noted),
      outputTokens: optional(integer(0)),
    }),
    "first-token": record({ request, ttftMicros: integer(0) }),
    progress: record({ request, outputTokens: integer(0) }),
    failed: record({ request }),
    released: record({
      request,
      outcome: oneOf(OUTCOMES),
      promptTokens: maybe(integer(0)),
      outputTokens: maybe(integer(0)),
      decodeMicros: maybe(integer(0)),
    }),
    held: record<Omit<PeerHeld, "kind">>({ endpoint: text, session: maybe(text), blocks: chain }),
    breaker: record({ endpoint: text, state: oneOf(BREAKER_STATES), pauseMicros: number }),
    prefilled: record({ request, prefillMicros: integer(0) }),
    used: record<Omit<PeerUsed, "kind">>({
      model: text,
      tenant: text,
      user: optional(text),
      requests: integer(1),
      promptTokens: integer(0),
      outputTokens: integer(0),
    }),
    window: record<Omit<PeerWindow, "kind">>({
      limit: text,
      measure: text,
      subject: text,
      passedMicros: integer(0),
      ageMicros: optional(integer(0)),
      counts: listOf(integer(0), COUNTS_MAX),
    }),
  },
  true,
);

export const peerReport = {
  peer: text,
  epoch: integer(0),
  sequence: integer(1),
  snapshot: flag,
  news: listOf(peerNews),
};

/** The chains that go with the news, in their order. */
export function chainsOf(news: readonly PeerNews[]): BlockChain[] {
  return news.flatMap((one) => ("blocks" in one && one.blocks.length > 0 ? [one.blocks] : []));
}
