import { EMPTY_CHAIN, type BlockChain } from "#core/prompt/block-chain.ts";
import { BlockArchive } from "./block-archive.ts";
import { decodeDecision } from "./decision-codec.ts";
import { Fields, TraceFormatError } from "./fields.ts";
import { decodeHeader } from "./header-codec.ts";
import { decodeInput } from "./input-codec.ts";
import { decodeHashes } from "./hash-text.ts";
import type { TraceGap, TraceHeader, TraceRecord } from "./record.ts";

/** Reads the lines of one segment, in order. A line that is refused changes nothing but what later lines may refer to. */
export class TraceDecoder {
  readonly header: TraceHeader;
  readonly #archive = new BlockArchive();

  /** Takes the segment's first line; throws TraceFormatError when it is no header of a version that is known. */
  constructor(headerLine: string) {
    this.header = decodeHeader(new Fields(parse(headerLine), ""));
  }

  /** Throws TraceFormatError with the path of what is wrong. */
  decode(line: string): TraceRecord | TraceGap {
    const fields = new Fields(parse(line), "");
    if (fields.raw("kind") === "gap")
      return { kind: "gap", at: fields.integer("at", 0), dropped: fields.integer("dropped", 1) };
    const chains = this.#chains(fields);
    const input = decodeInput(fields, () => chains.shift() ?? this.#emptyChain(this.header.hash.blockTokens));
    if (!fields.has("decision")) return { kind: "record", input, decision: undefined };
    const requestId = input.kind === "request-arrived" ? input.request.id : fields.string("requestId");
    return { kind: "record", input, decision: decodeDecision(fields.object("decision"), input.at, requestId) };
  }

  /** Of the request that arrives, or of those that a peer reports. */
  #chains(fields: Fields): BlockChain[] {
    if (fields.has("chain")) return [this.#chain(fields.object("chain"))];
    if (!fields.has("chains")) return [];
    return fields.list("chains").map((chain, i) => this.#chain(new Fields(chain, `chains[${i}]`)));
  }

  #chain(fields: Fields): BlockChain {
    const blockTokens = fields.number("blockTokens", this.header.hash.blockTokens);
    if (fields.boolean("fresh", false)) this.#archive.clear();
    if (!fields.has("lanes")) return this.#emptyChain(blockTokens);
    const added = decodeHashes(fields.string("lanes"), fields.pathOf("lanes"));
    if (!fields.has("first")) return { hashes: added, length: added.length / 2, blockTokens };
    const parent = fields.integer("parent", 0, -1);
    const hashes = this.#archive.add(parent, fields.integer("first", 0), added);
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

function parse(line: string): unknown {
  try {
    return JSON.parse(line) as unknown;
  } catch {
    throw new TraceFormatError("not-json", `expected a line of JSON, got ${JSON.stringify(line.slice(0, 40))}`);
  }
}
