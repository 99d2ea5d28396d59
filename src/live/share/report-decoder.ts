import type { PeerCharged, PeerNews } from "#core/peer-news.ts";
import { type BlockChain, EMPTY_CHAIN } from "#core/prompt/block-chain.ts";
import { BlockArchive } from "#trace/block-archive.ts";
import { ByteReader, WireError } from "./byte-reader.ts";
import { decodeNoted } from "./noted-wire.ts";
import { CHAIN_BLOCKS_MAX } from "./report-encoder.ts";
import { type Report, REPORT_KINDS } from "./report.ts";
import { EXACT, NEWS_KINDS, NOTED, OUTCOMES, PREFILL, USER, WIRE_VERSION } from "./wire.ts";

const NEWS_MAX = 1_000_000;
const WINDOW_COUNTS_MAX = 64;
const REPLICA = /^[!-~]{1,256}$/;

/** What stands before the news. */
export type ReportHead = Omit<Report, "news">;

/** A report of another version; of it no more is known than whose it is. */
export class OtherVersionError extends WireError {
  override readonly name = "OtherVersionError";
  readonly version: number;
  readonly replica: string;

  constructor(version: number, replica: string) {
    super(`expected version ${WIRE_VERSION}, got ${version}`);
    this.version = version;
    this.replica = replica;
  }
}

/** Reads a report's head alone; throws WireError, of a report of another version OtherVersionError. */
export function readHead(bytes: Buffer): { readonly head: ReportHead; readonly rest: ByteReader } {
  const from = new ByteReader(bytes);
  const version = from.byte();
  const kind = REPORT_KINDS[from.byte()];
  // In all versions heads are the same up to here.
  const fingerprint = from.whole();
  const replica = from.text();
  if (!REPLICA.test(replica)) throw new WireError("it has no replica's name");
  if (version !== WIRE_VERSION) throw new OtherVersionError(version, replica);
  if (kind === undefined) throw new WireError("its kind is unknown");
  return { head: { kind, fingerprint, replica, epoch: from.whole(), sequence: from.whole() }, rest: from };
}

/**
 * One life of one replica, as its reports are read in their order. Where some are missing, prompts that continue what was
 * in them are left out and counted, until the replica begins afresh.
 */
export class ReportDecoder {
  readonly #archive = new BlockArchive();
  #generation = -1;
  /** Prompts that continue what was not read. */
  chainsUnknown = 0;

  /** Throws WireError. */
  news(rest: ByteReader): PeerNews[] {
    const count = rest.whole();
    if (count > NEWS_MAX) throw new WireError("too many news");
    const news: PeerNews[] = [];
    for (let i = 0; i < count; i++) news.push(this.#one(rest));
    if (!rest.isAtEnd) throw new WireError("something follows its end");
    return news;
  }

  #one(from: ByteReader): PeerNews {
    const kind = NEWS_KINDS[from.byte()];
    if (kind === undefined) throw new WireError("news of an unknown kind");
    switch (kind) {
      case "charged":
        return this.#charged(from);
      case "first-token":
        return { kind, request: from.positive(), ttftMicros: from.whole() };
      case "prefilled":
        return { kind, request: from.positive(), prefillMicros: from.whole() };
      case "progress":
        return { kind, request: from.positive(), outputTokens: from.whole() };
      case "failed":
        return { kind, request: from.positive() };
      case "released": {
        const request = from.positive();
        const outcome = OUTCOMES[from.byte()];
        if (outcome === undefined) throw new WireError("an outcome is unknown");
        const counts = { promptTokens: from.optional(), outputTokens: from.optional(), decodeMicros: from.optional() };
        return { kind, request, outcome, ...counts };
      }
      case "held": {
        const endpoint = from.text();
        const session = from.byte() === 1 ? from.text() : undefined;
        return { kind, endpoint, session, blocks: this.#chain(from) };
      }
      case "used": {
        const [model, tenant, user] = [from.text(), from.text(), from.text()];
        const [requests, promptTokens, outputTokens] = [from.whole(), from.whole(), from.whole()];
        if (requests === 0) throw new WireError("nothing was used");
        return { kind, model, tenant, ...(user !== "" && { user }), requests, promptTokens, outputTokens };
      }
      case "window": {
        const [limit, measure, subject] = [from.text(), from.text(), from.text()];
        const passedMicros = from.whole();
        const count = from.whole();
        if (count > WINDOW_COUNTS_MAX) throw new WireError("a window has too many counts");
        return {
          kind,
          limit,
          measure,
          subject,
          passedMicros,
          counts: Array.from({ length: count }, () => from.whole()),
        };
      }
      case "breaker": {
        const endpoint = from.text();
        const state = from.byte() === 1 ? "open" : "closed";
        return { kind, endpoint, state, pauseMicros: from.whole() };
      }
    }
  }

  #charged(from: ByteReader): PeerCharged {
    const head = { kind: "charged", request: from.whole(), attempt: from.positive() } as const;
    const where = { endpoint: from.text(), profile: from.text(), reason: from.text() };
    const who = { model: from.text(), tenant: from.text(), session: from.text() };
    const sequences = from.positive();
    const promptTokens = from.whole();
    const bits = from.byte();
    const user = (bits & USER) === 0 ? undefined : from.text();
    const outputTokensMax = from.optional();
    const tokens = { promptTokens, promptTokensExact: (bits & EXACT) !== 0, newTokens: from.whole() };
    const stage = (bits & PREFILL) !== 0 && { prefill: decodePrefill(from) };
    const noted = (bits & NOTED) !== 0 && { noted: decodeNoted(from) };
    const outputTokens = from.optional();
    const blocks = this.#chain(from);
    return {
      ...head,
      ...where,
      ...who,
      ...(user !== undefined && { user }),
      ...(outputTokensMax !== undefined && { outputTokensMax }),
      sequences,
      ...tokens,
      ...stage,
      ...noted,
      blocks,
      ...(outputTokens !== undefined && { outputTokens }),
    };
  }

  #chain(from: ByteReader): BlockChain {
    const length = from.whole();
    if (length === 0) return EMPTY_CHAIN;
    const blockTokens = Number(from.text());
    if (!(blockTokens > 0)) throw new WireError("a block has no size");
    if (from.byte() === 0) return EMPTY_CHAIN;
    const generation = from.whole();
    const parent = from.optional() ?? -1;
    const first = from.whole();
    const added = from.whole();
    if (length > CHAIN_BLOCKS_MAX || added > length) throw new WireError("a chain is too long");
    const words = from.words(2 * added);
    if (generation !== this.#generation) this.#archive.clear();
    this.#generation = generation;
    const hashes = this.#archive.add(parent, first, words);
    if (hashes?.length === 2 * length) return { hashes, length, blockTokens };
    this.chainsUnknown++;
    return EMPTY_CHAIN;
  }
}

function decodePrefill(from: ByteReader): NonNullable<PeerCharged["prefill"]> {
  const stage = { endpoint: from.text(), newTokens: from.whole() };
  return from.byte() === 0 ? stage : { ...stage, noted: decodeNoted(from) };
}
