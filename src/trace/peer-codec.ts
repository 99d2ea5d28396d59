import type { BreakerState } from "#core/endpoint/breaker.ts";
import type { Outcome } from "#core/endpoint/outcome.ts";
import type { Noted } from "#core/noted.ts";
import type { PeerCharged, PeerLeft, PeerNews, PeerReported } from "#core/peer-news.ts";
import { EMPTY_CHAIN, type BlockChain } from "#core/prompt/block-chain.ts";
import { Fields, TraceFormatError } from "./fields.ts";

const OUTCOMES: readonly Outcome[] = ["ok", "failed", "aborted", "timeout", "refused"];
const BREAKER_STATES: readonly Exclude<BreakerState, "half-open">[] = ["open", "closed"];

/** The fields of a peer's input as the inside of a JSON object. Where news have a chain, the caller writes it. */
export function encodePeer(input: PeerReported | PeerLeft): string {
  if (input.kind === "peer-left") return `"peer":${JSON.stringify(input.peer)}`;
  const { peer, epoch, sequence, snapshot, news } = input;
  const head = `"peer":${JSON.stringify(peer)},"epoch":${epoch},"sequence":${sequence}`;
  const rows = news.map((one) => JSON.stringify(withoutChain(one)));
  return `${head}${snapshot === true ? ',"snapshot":true' : ""},"news":[${rows.join(",")}]`;
}

/** The chains that go with the news, in their order. */
export function chainsOf({ news }: PeerReported): BlockChain[] {
  return news.flatMap((one) => ("blocks" in one && one.blocks.length > 0 ? [one.blocks] : []));
}

/** `chain` gives the next one each time that it is called. */
export function decodePeerReported(at: number, fields: Fields, chain: () => BlockChain): PeerReported {
  const rows = fields.list("news").map((row, i) => new Fields(row, `${fields.pathOf("news")}[${i}]`));
  return {
    kind: "peer-reported",
    at,
    peer: fields.string("peer"),
    epoch: fields.integer("epoch", 0),
    sequence: fields.integer("sequence", 1),
    ...(fields.boolean("snapshot", false) && { snapshot: true }),
    news: rows.map((row) => decodeNews(row, () => (row.boolean("chain", false) ? chain() : EMPTY_CHAIN))),
  };
}

/** Fields at their usual value ("", 1, undefined) are left out. */
function withoutChain(news: PeerNews): object {
  if (news.kind === "charged") {
    const { blocks, attempt, sequences, tenant, session, model, profile, reason, promptTokensExact, ...rest } = news;
    return {
      ...rest,
      ...(attempt !== 1 && { attempt }),
      ...(sequences !== 1 && { sequences }),
      ...(promptTokensExact && { promptTokensExact }),
      ...(tenant !== "" && { tenant }),
      ...(session !== "" && { session }),
      ...(model !== "" && { model }),
      ...(profile !== "" && { profile }),
      ...(reason !== "" && { reason }),
      ...(blocks.length > 0 && { chain: true }),
    };
  }
  if (news.kind !== "held") return news;
  const { kind, endpoint, session, blocks } = news;
  return { kind, endpoint, ...(session !== undefined && { session }), ...(blocks.length > 0 && { chain: true }) };
}

function decodeNews(fields: Fields, blocks: () => BlockChain): PeerNews {
  const kind = fields.string("kind") as PeerNews["kind"];
  switch (kind) {
    case "charged":
      return decodeCharged(fields, blocks());
    case "first-token":
      return { kind, request: fields.integer("request", 1), ttftMicros: fields.integer("ttftMicros", 0) };
    case "prefilled":
      return { kind, request: fields.integer("request", 1), prefillMicros: fields.integer("prefillMicros", 0) };
    case "progress":
      return { kind, request: fields.integer("request", 1), outputTokens: fields.integer("outputTokens", 0) };
    case "failed":
      return { kind, request: fields.integer("request", 1) };
    case "released":
      return {
        kind,
        request: fields.integer("request", 1),
        outcome: fields.oneOf("outcome", OUTCOMES),
        promptTokens: fields.optionalInteger("promptTokens", 0),
        outputTokens: fields.optionalInteger("outputTokens", 0),
        decodeMicros: fields.optionalInteger("decodeMicros", 0),
      };
    case "held": {
      const session = fields.has("session") ? fields.string("session") : undefined;
      return { kind, endpoint: fields.string("endpoint"), session, blocks: blocks() };
    }
    case "breaker":
      return {
        kind,
        endpoint: fields.string("endpoint"),
        state: fields.oneOf("state", BREAKER_STATES),
        pauseMicros: fields.number("pauseMicros"),
      };
    case "used":
      return {
        kind,
        model: fields.string("model"),
        tenant: fields.string("tenant"),
        ...(fields.has("user") && { user: fields.string("user") }),
        requests: fields.integer("requests", 1),
        promptTokens: fields.integer("promptTokens", 0),
        outputTokens: fields.integer("outputTokens", 0),
      };
    case "window":
      return {
        kind,
        limit: fields.string("limit"),
        measure: fields.string("measure"),
        subject: fields.string("subject"),
        passedMicros: fields.integer("passedMicros", 0),
        ...(fields.has("ageMicros") && { ageMicros: fields.integer("ageMicros", 0) }),
        counts: fields.list("counts").map((count, i) => {
          if (Number.isSafeInteger(count) && (count as number) >= 0) return count as number;
          const path = `${fields.pathOf("counts")}[${i}]`;
          throw new TraceFormatError("invalid", `${path}: expected a whole number of at least 0`);
        }),
      };
    default: {
      const found = JSON.stringify(kind satisfies never);
      throw new TraceFormatError("unknown-kind", `${fields.pathOf("kind")}: expected news of version 1, got ${found}`);
    }
  }
}

function decodeCharged(fields: Fields, blocks: BlockChain): PeerCharged {
  return {
    kind: "charged",
    request: fields.integer("request", 0),
    attempt: fields.integer("attempt", 1, 1),
    endpoint: fields.string("endpoint"),
    profile: fields.string("profile", ""),
    reason: fields.string("reason", ""),
    model: fields.string("model", ""),
    tenant: fields.string("tenant", ""),
    ...(fields.has("user") && { user: fields.string("user") }),
    ...(fields.has("outputTokensMax") && { outputTokensMax: fields.number("outputTokensMax") }),
    session: fields.string("session", ""),
    sequences: fields.integer("sequences", 1, 1),
    promptTokens: fields.number("promptTokens"),
    promptTokensExact: fields.boolean("promptTokensExact", false),
    newTokens: fields.number("newTokens"),
    blocks,
    ...(fields.has("prefill") && { prefill: decodePrefill(fields.object("prefill")) }),
    ...decodeNoted(fields),
    ...(fields.has("outputTokens") && { outputTokens: fields.integer("outputTokens", 0) }),
  };
}

function decodePrefill(fields: Fields): NonNullable<PeerCharged["prefill"]> {
  return { endpoint: fields.string("endpoint"), newTokens: fields.number("newTokens"), ...decodeNoted(fields) };
}

function decodeNoted(charge: Fields): { readonly noted?: Noted } {
  if (!charge.has("noted")) return {};
  const fields = charge.object("noted");
  const load = fields.has("load") ? fields.object("load") : undefined;
  return {
    noted: {
      ...(fields.has("boundTo") && { boundTo: fields.string("boundTo") }),
      ...(fields.has("warm") && { warm: fields.boolean("warm", false) }),
      ...(fields.boolean("turn", false) && { turn: true }),
      ...(load !== undefined && {
        load: {
          effectiveLoad: load.number("effectiveLoad"),
          requestsInFlight: load.number("requestsInFlight"),
          prefillTokensQueued: load.number("prefillTokensQueued"),
          fresh: load.boolean("fresh", false),
        },
      }),
    },
  };
}
