import { randomFor, type Random } from "#core/base/random.ts";
import type { TemplateMessage, ChatPrompt } from "./chat-prompt.ts";
import type { Piece, EngineTokenizer } from "./tokenizer.ts";

/*
 * The vocabulary, sparse, every id a pure function of its text:
 *   0 .. 255                 one byte
 *   256 + 14 bits            two ASCII characters
 *   128,000 .. 128,255       special tokens, where Llama 3 has them
 *   2^22 + 21 bits           three ASCII characters
 *   2^23 + code point        one character outside ASCII
 *   2^24 + 28 bits           four ASCII characters
 * Text is cut into runs of four ASCII characters from its beginning, so a prefix of a text has a prefix of its tokens.
 */
const PAIR = 256;
const SPECIAL = 128_000;
const TRIPLE = 2 ** 22;
const CHARACTER = 2 ** 23;
const QUAD = 2 ** 24;
const CODE_POINT_MAX = 0x10ffff;
const ASCII_MAX = 0x7f;

const SPECIALS = new Map([
  [SPECIAL, "<|begin_of_text|>"],
  [SPECIAL + 1, "<|end_of_text|>"],
  [SPECIAL + 6, "<|start_header_id|>"],
  [SPECIAL + 7, "<|end_header_id|>"],
  [SPECIAL + 9, "<|eot_id|>"],
]);

const PIECE_COUNT = 2_048;

/** The emulator's own tokenizer: about four bytes a token, reversible, no vocabulary file. */
export class QuadTokenizer implements EngineTokenizer {
  readonly name = "quad";
  readonly endToken = SPECIAL + 9;
  readonly headerEnd = SPECIAL + 7;
  readonly #pieces = drawPieces();
  #scratch = new Int32Array(4_096);

  encode(text: string): Int32Array {
    this.#reserve(text.length);
    return this.#scratch.slice(0, encodeInto(this.#scratch, 0, text));
  }

  encodeChat(prompt: ChatPrompt): Int32Array {
    const { messages, tools } = prompt;
    const toolText = tools === undefined || tools.length === 0 ? "" : JSON.stringify(tools);
    let characters = toolText.length + 64;
    for (const message of messages) characters += message.role.length + message.content.length + 8;
    this.#reserve(characters);
    const out = this.#scratch;
    let at = 0;
    out[at++] = SPECIAL;
    if (toolText !== "") at = encodeMessage(out, at, "system", toolText, true);
    const last = messages.at(-1);
    for (const message of messages) at = encodeTurn(out, at, message, prompt.continueFinalMessage && message === last);
    if (prompt.addGenerationPrompt) at = encodeHeader(out, at, "assistant");
    return out.slice(0, at);
  }

  has(token: number): boolean {
    if (!Number.isInteger(token) || token < 0) return false;
    if (token < PAIR + 2 ** 14) return true;
    if (token >= SPECIAL && token < SPECIAL + 256) return true;
    if (token >= TRIPLE && token < TRIPLE + 2 ** 21) return true;
    if (token >= CHARACTER && token <= CHARACTER + CODE_POINT_MAX) return true;
    return token >= QUAD && token < QUAD + 2 ** 28;
  }

  decode(token: number): string {
    if (token < 256) return token <= ASCII_MAX ? String.fromCharCode(token) : "\ufffd";
    if (token < SPECIAL) return unpack(token - PAIR, 2);
    if (token < TRIPLE) return SPECIALS.get(token) ?? `<|reserved_special_token_${token - SPECIAL}|>`;
    if (token < CHARACTER) return unpack(token - TRIPLE, 3);
    if (token < QUAD) return String.fromCodePoint(token - CHARACTER);
    return unpack(token - QUAD, 4);
  }

  spell(token: number): string {
    return this.decode(token).replaceAll(" ", "\u0120").replaceAll("\n", "\u010a");
  }

  draw(random: Random, first: boolean): Piece {
    const index = random.below(PIECE_COUNT);
    return this.#pieces[first ? index | 1 : index] ?? NO_PIECE;
  }

  pieces(text: string): readonly Piece[] {
    return Array.from(this.encode(text), (id) => ({ id, text: this.decode(id) }));
  }

  #reserve(tokens: number): void {
    if (this.#scratch.length < tokens) this.#scratch = new Int32Array(tokens * 2);
  }
}

const NO_PIECE: Piece = { id: 0x20, text: " " };

function encodeTurn(out: Int32Array, at: number, message: TemplateMessage, open: boolean): number {
  return encodeMessage(out, at, message.role, message.content, !open);
}

function encodeMessage(out: Int32Array, start: number, role: string, content: string, closed: boolean): number {
  const at = encodeInto(out, encodeHeader(out, start, role), content);
  if (!closed) return at;
  out[at] = SPECIAL + 9;
  return at + 1;
}

function encodeHeader(out: Int32Array, start: number, role: string): number {
  out[start] = SPECIAL + 6;
  const at = encodeInto(out, start + 1, role);
  out[at] = SPECIAL + 7;
  return encodeInto(out, at + 1, "\n\n");
}

/** Writes the tokens of a text from `at` on and returns the position after them. `out` has room for every character. */
function encodeInto(out: Int32Array, start: number, text: string): number {
  const { length } = text;
  let at = start;
  let i = 0;
  while (i < length) {
    const a = text.charCodeAt(i);
    if (a > ASCII_MAX) {
      const point = text.codePointAt(i) ?? a;
      out[at++] = CHARACTER + (point >= 0xd800 && point <= 0xdfff ? 0xfffd : point);
      i += point > 0xffff ? 2 : 1;
      continue;
    }
    const b = i + 1 < length ? text.charCodeAt(i + 1) : ASCII_MAX + 1;
    const c = i + 2 < length ? text.charCodeAt(i + 2) : ASCII_MAX + 1;
    const d = i + 3 < length ? text.charCodeAt(i + 3) : ASCII_MAX + 1;
    if (b > ASCII_MAX) {
      out[at++] = a;
      i += 1;
    } else if (c > ASCII_MAX) {
      out[at++] = PAIR + ((a << 7) | b);
      i += 2;
    } else if (d > ASCII_MAX) {
      out[at++] = TRIPLE + ((a << 14) | (b << 7) | c);
      i += 3;
    } else {
      out[at++] = QUAD + ((a << 21) | (b << 14) | (c << 7) | d);
      i += 4;
    }
  }
  return at;
}

function unpack(packed: number, characters: number): string {
  let text = "";
  for (let shift = 7 * (characters - 1); shift >= 0; shift -= 7) {
    text += String.fromCharCode((packed >>> shift) & ASCII_MAX);
  }
  return text;
}

/** The words of the emulator: syllables of four characters, the even ones with a space in front. */
function drawPieces(): readonly Piece[] {
  const random = randomFor(0x9e3779b9, 0);
  const pick = (letters: string) => letters[random.below(letters.length)] ?? "a";
  const consonant = () => pick("bcdfghklmnprstvz");
  const vowel = () => pick("aeiou");
  const scratch = new Int32Array(4);
  return Array.from({ length: PIECE_COUNT }, (_, index) => {
    const syllable = consonant() + vowel() + consonant();
    const text = index % 2 === 0 ? ` ${syllable}` : syllable + vowel();
    encodeInto(scratch, 0, text);
    return { id: scratch[0] ?? 0, text };
  });
}
