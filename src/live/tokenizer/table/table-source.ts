import type { NativeModel } from "./native-model.ts";

/** A tokenizer.json and what is beside it that changes its tokens. */
export interface TableRequest {
  readonly tokenizerPath: string;
  /** added_tokens_decoder of tokenizer_config.json, as it stands there. */
  readonly addedTokensDecoder: unknown;
}

/** A packed BpeTable and where it is from, or why the own scanner cannot do this file. */
export type MadeTable =
  | { readonly table: SharedArrayBuffer; readonly from: string }
  /** `loaded`: where it was made here, the library's model, which stands in. */
  | { readonly reason: string; readonly loaded?: NativeModel };

/** Throws an error that states what is wrong with the file. */
export type TableSource = (request: TableRequest) => Promise<MadeTable>;
