import type { BlockChain } from "#core/prompt/block-chain.ts";
import { BlockTable } from "#trace/codec/block-table.ts";
import { ByteWriter } from "#trace/codec/byte-writer.ts";
import { type Beside, NOTHING_BESIDE } from "#trace/codec/field-type.ts";
import { newsRows, type Report, REPORT_KINDS, WIRE_VERSION } from "./report.ts";

/** Blocks that later reports may refer to; beyond them all begins afresh. */
export const CHAIN_BLOCKS_MAX = 262_144;

/** A report as bytes. Of a prompt, only the blocks that no report before had: what it continues is named by number. */
export class ReportEncoder {
  readonly #table = new BlockTable(CHAIN_BLOCKS_MAX);
  #generation = 0;
  readonly #beside: Beside = { ...NOTHING_BESIDE, packChain: (chain, to) => this.#chain(chain, to) };
  /** Blocks that were written, and those that needed not be. */
  blocksWritten = 0;
  blocksKnown = 0;

  /** What comes refers to nothing before it: for those who did not get all of it. */
  startAfresh(): void {
    this.#table.clear();
    this.#generation++;
  }

  encode({ kind, fingerprint, replica, epoch, sequence, news }: Report): Buffer {
    const to = new ByteWriter();
    to.byte(WIRE_VERSION);
    to.byte(REPORT_KINDS.indexOf(kind));
    to.whole(fingerprint);
    to.text(replica);
    to.whole(epoch);
    to.whole(sequence);
    newsRows.pack!(news, to, this.#beside);
    return to.taken();
  }

  #chain(chain: BlockChain, to: ByteWriter): void {
    to.whole(chain.length);
    if (chain.length === 0) return;
    to.text(String(chain.blockTokens));
    if (chain.length > CHAIN_BLOCKS_MAX) return to.byte(0);
    if (!this.#table.fits(chain)) this.startAfresh();
    const { parent, first, known } = this.#table.add(chain);
    this.blocksKnown += known;
    this.blocksWritten += chain.length - known;
    to.byte(1);
    to.whole(this.#generation);
    to.optional(parent < 0 ? undefined : parent);
    to.whole(first);
    to.whole(chain.length - known);
    to.words(chain.hashes.subarray(2 * known, 2 * chain.length));
  }
}
