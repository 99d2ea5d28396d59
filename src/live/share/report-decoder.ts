import type { PeerNews } from "#core/request/peer-news.ts";
import { type BlockChain, EMPTY_CHAIN } from "#core/prompt/block-chain.ts";
import { BlockArchive } from "#trace/codec/block-archive.ts";
import { ByteReader, WireError } from "#trace/codec/byte-reader.ts";
import { type Beside, NOTHING_BESIDE } from "#trace/codec/field-type.ts";
import { CHAIN_BLOCKS_MAX } from "./report-encoder.ts";
import { newsRows, type Report, REPORT_KINDS, WIRE_VERSION } from "./report.ts";

/** Of the prompts of one report, which may each continue what earlier ones sent; those beyond are left out and counted. */
const REPORT_BLOCKS_MAX = 2_097_152;
/** Longer reports are refused: a sender has no more under way. */
const REPORT_BYTES_MAX = 4_194_304;
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
  if (bytes.length > REPORT_BYTES_MAX) throw new WireError(`it is longer than ${REPORT_BYTES_MAX} bytes`);
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
  /** Of the prompts of the report at hand. */
  #blocks = 0;
  readonly #beside: Beside = { ...NOTHING_BESIDE, unpackChain: (from) => this.#chain(from) };
  /** Prompts that continue what was not read. */
  chainsUnknown = 0;

  /** Throws WireError. */
  news(rest: ByteReader): readonly PeerNews[] {
    this.#blocks = 0;
    const news = newsRows.unpack!(rest, this.#beside);
    if (!rest.isAtEnd) throw new WireError("something follows its end");
    return news;
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
    this.#blocks += length;
    const hashes = this.#blocks > REPORT_BLOCKS_MAX ? undefined : this.#archive.add(parent, first, words);
    if (hashes?.length === 2 * length) return { hashes, length, blockTokens };
    this.chainsUnknown++;
    return EMPTY_CHAIN;
  }
}
