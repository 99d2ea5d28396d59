import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import type { Micros } from "#core/base/units.ts";
import { BlockTable, TABLE_BLOCKS_MAX } from "./block-table.ts";
import { chainRow, type ChainRow } from "./chain-table.ts";
import { encodeDecision } from "./decision-table.ts";
import { type Beside, NOTHING_BESIDE } from "./field-type.ts";
import { encodeHeader } from "./header-table.ts";
import { encodeInput } from "./input-table.ts";
import { chainsOf } from "./peer-table.ts";
import type { RecordedDecision, TraceHeader } from "./record.ts";

export interface EncoderOptions {
  /** Tokens per block of most chains; a chain with others states so. */
  readonly blockTokens: number;
  /** Candidates that a decision is written with; its digest covers all. */
  readonly candidatesMax?: number;
  /** Blocks that may be referred to at once. */
  readonly blocksMax?: number;
}

/** The chosen candidate and those that it had to beat. */
const CANDIDATES_MAX_DEFAULT = 4;

/** Writes the lines of one segment, in order. Lines have no newline. Text is ASCII or whatever ids and names hold. */
export class TraceEncoder {
  readonly #table: BlockTable;
  readonly #blockTokens: number;
  readonly #beside: Beside;
  /** Blocks that were written although they had been written before, because the table started afresh or was too small. */
  blocksRepeated = 0;

  constructor({ blockTokens, candidatesMax = CANDIDATES_MAX_DEFAULT, blocksMax = TABLE_BLOCKS_MAX }: EncoderOptions) {
    this.#blockTokens = blockTokens;
    this.#beside = { ...NOTHING_BESIDE, candidatesMax };
    this.#table = new BlockTable(blocksMax);
  }

  /** First line of a segment; what follows refers to nothing before it. */
  header(header: TraceHeader): string {
    this.#table.clear();
    return encodeHeader(header, this.#beside);
  }

  record(input: Input, decision: Decision | RecordedDecision | undefined): string {
    let line = `{${encodeInput(input, this.#beside)}`;
    if (decision !== undefined) line += `,"decision":${encodeDecision(decision, this.#beside)}`;
    if ("request" in input) {
      const chain = this.#chain(input.request.blocks);
      if (chain !== "{}") line += `,"chain":${chain}`;
    } else if (input.kind === "peer-reported") {
      const chains = chainsOf(input.news).map((chain) => this.#chain(chain));
      if (chains.length > 0) line += `,"chains":[${chains.join(",")}]`;
    }
    return `${line}}`;
  }

  gap(at: Micros, dropped: number): string {
    return `{"kind":"gap","at":${at},"dropped":${dropped}}`;
  }

  /** A chain larger than the whole table is written without numbers. */
  #chain(chain: BlockChain): string {
    return chainRow.write(this.#rowOf(chain), NOTHING_BESIDE)!;
  }

  #rowOf(chain: BlockChain): ChainRow {
    const cut = chain.blockTokens === this.#blockTokens ? {} : { blockTokens: chain.blockTokens };
    if (chain.length === 0) return cut;
    let fresh = {};
    if (!this.#table.fits(chain)) {
      this.blocksRepeated += this.#table.size;
      this.#table.clear();
      fresh = { fresh: true };
      if (!this.#table.fits(chain)) return { ...cut, ...fresh, hashes: chain.hashes.subarray(0, 2 * chain.length) };
    }
    const { parent, first, known } = this.#table.add(chain);
    const hashes = chain.hashes.subarray(2 * known, 2 * chain.length);
    return { ...cut, ...fresh, ...(parent >= 0 && { parent }), first, hashes };
  }
}
