import { EMPTY_CHAIN, type BlockChain } from "#core/prompt/block-chain.ts";
import { BlockArchive } from "./block-archive.ts";
import { decodeDecision } from "./decision-table.ts";
import { type Beside, integer, type JsonFields, NOTHING_BESIDE, objectOf } from "./field-type.ts";
import { chainRow, chainRows, type ChainRow } from "./chain-table.ts";
import { decodeHeader } from "./header-table.ts";
import { decodeInput } from "./input-table.ts";
import { record } from "./record-type.ts";
import { TraceFormatError } from "./format-error.ts";
import type { TraceGap, TraceHeader, TraceRecord } from "./record.ts";

const gap = record<Omit<TraceGap, "kind" | "damage">>({ at: integer(0), dropped: integer(1) });

/** Reads the lines of one segment, in order. A line that is refused changes nothing but what later lines may refer to. */
export class TraceDecoder {
  readonly header: TraceHeader;
  readonly #archive = new BlockArchive();
  /** Of the line at hand, those that are yet to be taken. */
  #chains: BlockChain[] = [];
  readonly #beside: Beside = {
    ...NOTHING_BESIDE,
    chain: () => this.#chains.shift() ?? this.#emptyChain(this.header.hash.blockTokens),
  };

  /** Takes the segment's first line; throws TraceFormatError when it is no header of a version that is known. */
  constructor(headerLine: string) {
    this.header = decodeHeader(parse(headerLine), NOTHING_BESIDE);
  }

  /** Throws TraceFormatError with the path of what is wrong. */
  decode(text: string): TraceRecord | TraceGap {
    const line = parse(text);
    if (line["kind"] === "gap") return { kind: "gap", ...gap.readFields(line, undefined, NOTHING_BESIDE) };
    this.#chains = this.#chainsOf(line);
    const input = decodeInput(line, this.#beside);
    if (line["decision"] === undefined) return { kind: "record", input, decision: undefined };
    const requestId = input.kind === "request-arrived" ? input.request.id : "requestId" in input ? input.requestId : "";
    return { kind: "record", input, decision: decodeDecision(line["decision"], input.at, requestId, this.#beside) };
  }

  /** Of the request that arrives, or of those that a peer reports. */
  #chainsOf({ chain, chains }: JsonFields): BlockChain[] {
    if (chain !== undefined) return [this.#chain(chainRow.read(chain, undefined, "chain", NOTHING_BESIDE))];
    if (chains === undefined) return [];
    return chainRows.read(chains, undefined, "chains", NOTHING_BESIDE).map((row) => this.#chain(row));
  }

  #chain({
    blockTokens = this.header.hash.blockTokens,
    fresh,
    hashes: added,
    first,
    parent = -1,
  }: ChainRow): BlockChain {
    if (fresh === true) this.#archive.clear();
    if (added === undefined) return this.#emptyChain(blockTokens);
    if (first === undefined) return { hashes: added, length: added.length / 2, blockTokens };
    const hashes = this.#archive.add(parent, first, added);
    if (hashes === undefined)
      throw new TraceFormatError(
        "unknown-block",
        `chain: expected blocks that were read before, got a reference to block ${parent}`,
      );
    return { hashes, length: hashes.length / 2, blockTokens };
  }

  #emptyChain(blockTokens: number): BlockChain {
    return { ...EMPTY_CHAIN, blockTokens };
  }
}

function parse(line: string): JsonFields {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    throw new TraceFormatError("not-json", `expected a line of JSON, got ${JSON.stringify(line.slice(0, 40))}`);
  }
  return objectOf(parsed, undefined, "");
}
