import type { Tokenizer as NativeTokenizer } from "tokenizers";

/** Text of single tokens, for the two ways in which vocabularies spell bytes. */
export class TokenText {
  readonly #native: NativeTokenizer;
  readonly #byteLevel: boolean;

  constructor(native: NativeTokenizer) {
    this.#native = native;
    this.#byteLevel = native.tokenToId("\u0120") !== null || native.tokenToId("\u0120the") !== null;
  }

  decode(token: number): string {
    const spelling = this.#native.idToToken(token);
    if (spelling === null) return "";
    return this.#byteLevel ? decodeByteLevel(spelling) : decodeSentencePiece(spelling);
  }
}

function decodeByteLevel(spelling: string): string {
  const bytes: number[] = [];
  for (const char of spelling) {
    const byte = BYTE_OF.get(char);
    // A special token is spelled as it is.
    if (byte === undefined) return spelling;
    bytes.push(byte);
  }
  return Buffer.from(bytes).toString("utf8");
}

function decodeSentencePiece(spelling: string): string {
  const byte = /^<0x([0-9A-F]{2})>$/.exec(spelling)?.[1];
  if (byte !== undefined) return Buffer.from(byte, "hex").toString("utf8");
  return spelling.replaceAll("\u2581", " ");
}

/** GPT-2's table: printable bytes stand for themselves, the others are moved behind them. */
const BYTE_OF: ReadonlyMap<string, number> = byteTable();

function byteTable(): ReadonlyMap<string, number> {
  const table = new Map<string, number>();
  const printable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
  let moved = 0;
  for (let byte = 0; byte < 256; byte++) {
    table.set(String.fromCodePoint(printable(byte) ? byte : 256 + moved++), byte);
  }
  return table;
}
