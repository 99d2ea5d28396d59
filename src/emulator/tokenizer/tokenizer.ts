import type { Random } from "#core/base/random.ts";
import type { ChatPrompt } from "./chat-prompt.ts";

/** One token that a generation may produce. */
export interface Piece {
  readonly id: number;
  readonly text: string;
}

/**
 * Text to token ids and back. Encoding what was generated gives the ids that were generated, so that an answer sent back
 * as history finds its own blocks in the prefix cache.
 */
export interface EngineTokenizer {
  readonly name: string;
  /** The token that ends an answer. */
  readonly endToken: number;
  /** The token behind which, after a line break, a turn of a chat begins; left out where templates have none. */
  readonly headerEnd?: number | undefined;
  encode(text: string): Promise<Int32Array> | Int32Array;
  /** A conversation with its template applied. */
  encodeChat(prompt: ChatPrompt): Promise<Int32Array> | Int32Array;
  has(token: number): boolean;
  /** Text of one token; the replacement character for a part of a character. */
  decode(token: number): string;
  /** The token as the vocabulary spells it. */
  spell(token: number): string;
  /** A token of ordinary text; as the first of an answer one without a space in front, which templates would trim. */
  draw(random: Random, first: boolean): Piece;
  /** Text as the tokens that would produce it, in order. */
  pieces(text: string): Promise<readonly Piece[]> | readonly Piece[];
}
