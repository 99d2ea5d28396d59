import type { Asker } from "../../base/loop-turn.ts";
import type { AddedToken } from "./added-tokens.ts";
import type { Words } from "../text/word-source.ts";

/** Text, with special tokens written in it, to token ids, and none added. */
export interface TextEncoding {
  /** As WordSource.words. */
  encode(text: string, asker?: Asker): Words;
  /** Tokens at which a text may be cut: what is before one and what starts with it are encoded independently. */
  readonly cuts: readonly AddedToken[];
  /** All added tokens. */
  readonly added: readonly AddedToken[];
  readonly counters: Readonly<Record<string, number>>;
}
