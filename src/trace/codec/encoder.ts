import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import type { Micros } from "#core/base/units.ts";
import { BlockTable, TABLE_BLOCKS_MAX } from "./block-table.ts";
import { chainRow, chainRows, type ChainRow } from "./chain-table.ts";
import { encodeDecision } from "./decision-table.ts";
import { type Beside, NOTHING_BESIDE } from "./field-type.ts";
import { encodeHeader } from "./header-table.ts";
import { encodeInput } from "./input-table.ts";
import { JsonBytes } from "./json-bytes.ts";
import { chainsOf } from "./peer-table.ts";
import type { RecordedDecision, TraceHeader } from "./record.ts";

export interface EncoderOptions {
  /** Tokens per block of most chains; a chain with others states so. */
  readonly blockTokens: number;
  /** Candidates that a decision is written with; its digest covers all. */
  readonly candidatesMax?: number;
  /** Blocks that may be referred to at once. */
  readonly blocksMax?: number | undefined;
}

/** The chosen candidate and those that it had to beat. */
const CANDIDATES_MAX_DEFAULT = 4;
/** Of a prompt that has none, cut as most are. */
const NO_BLOCKS: ChainRow = {};

/** Writes the lines of one segment, in order. Text is ASCII or whatever ids and names hold. */
export class TraceEncoder {
  /** Lines that were not taken yet, each with its newline. */
  readonly lines = new JsonBytes();
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
  header(header: TraceHeader): void {
    this.#table.clear();
    encodeHeader(header, this.lines, this.#beside);
    this.lines.ascii("\n");
  }

  /** Throws a RangeError, and writes nothing, where something has no JSON form. */
  record(input: Input, decision: Decision | RecordedDecision | undefined): void {
    const to = this.lines;
    const start = to.length;
    try {
      encodeInput(input, to, this.#beside);
      if (decision !== undefined) {
        to.ascii(',"decision":');
        encodeDecision(decision, to, this.#beside);
      }
    } catch (error) {
      to.cut(start);
      throw error;
    }
    if ("request" in input) {
      const row = this.#rowOf(input.request.blocks);
      if (row !== NO_BLOCKS) {
        to.ascii(',"chain":');
        chainRow.write(row, to, NOTHING_BESIDE);
      }
    } else if (input.kind === "peer-reported") {
      const chains = chainsOf(input.news);
      if (chains.length > 0) {
        to.ascii(',"chains":');
        chainRows.write(
          chains.map((chain) => this.#rowOf(chain)),
          to,
          NOTHING_BESIDE,
        );
      }
    }
    to.object(start);
    to.ascii("\n");
  }

  gap(at: Micros, dropped: number): void {
    this.lines.ascii(`{"kind":"gap","at":${at},"dropped":${dropped}}\n`);
  }

  /** A chain larger than the whole table is written without numbers. */
  #rowOf(chain: BlockChain): ChainRow {
    const blockTokens = chain.blockTokens === this.#blockTokens ? undefined : chain.blockTokens;
    if (chain.length === 0) return blockTokens === undefined ? NO_BLOCKS : { blockTokens };
    let fresh: true | undefined;
    if (!this.#table.fits(chain)) {
      this.blocksRepeated += this.#table.size;
      this.#table.clear();
      fresh = true;
      if (!this.#table.fits(chain)) return { blockTokens, fresh, hashes: chain.hashes.subarray(0, 2 * chain.length) };
    }
    const { parent, first, known } = this.#table.add(chain);
    const hashes = chain.hashes.subarray(2 * known, 2 * chain.length);
    return { blockTokens, fresh, parent: parent < 0 ? undefined : parent, first, hashes };
  }
}
