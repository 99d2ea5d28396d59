import type { TiktokenEncoding } from "tiktoken";
import { type BlockHash, type EngineChains, hasherOf, rootsOf } from "./chain-hash.ts";
import { ByteSource } from "./byte-source.ts";
import { CharacterSource } from "./character-source.ts";
import type { DescribedTokenizer } from "./described-tokenizer.ts";
import { readHuggingFaceFiles } from "./hugging-face-files.ts";
import { loadHuggingFaceModel } from "./hugging-face-model.ts";
import { HuggingFaceTokenizer } from "./hugging-face.ts";
import { PromptChains } from "./prompt-chains.ts";
import { StepCache } from "./step-cache.ts";
import { makeTable } from "./table/make-table.ts";
import type { TableSource } from "./table/table-source.ts";
import { TextTokenizer } from "./text-tokenizer.ts";
import type { TiktokenSource } from "./tiktoken-source.ts";
import type { Tokenizer } from "./text/tokenizer.ts";
import { type Ask, VllmTokenizer } from "./vllm.ts";

const MEMO_ENTRIES_MAX = 65_536;
const MEMO_BYTES_MAX = 32 * 1024 * 1024;
/** Bytes of the tokens kept by message, as a share of the memo's. */
const STEP_CACHE_SHARE = 0.25;
/** Characters per block of kind character, as its inventors recommend. */
const BLOCK_CHARACTERS = 128;
const BYTES_PER_WORD = 4;
/** English prose and code have 3.5 to 4.7. */
const CHARACTERS_PER_TOKEN = 4;
const TIMEOUT_MILLIS = 200;

export interface LoadOptions {
  readonly kind: Tokenizer["name"];
  readonly blockHash: BlockHash;
  /** Needed where the hash is an engine's way; of no effect else. */
  readonly engineChains?: EngineChains;
  /** Keys the chains' roots. */
  readonly secret: string | Uint8Array;
  /** Kind character: characters per block; 128 unless given. */
  readonly blockCharacters?: number;
  /** Kind tiktoken: cl100k_base unless given. */
  readonly tiktokenEncoding?: TiktokenEncoding;
  /** Kind huggingface: path of a tokenizer.json, or of the directory that holds one. Needed. */
  readonly tokenizerFile?: string;
  /** Kind huggingface: a chat template in Jinja or a tokenizer_config.json, where it is not beside the tokenizer. */
  readonly chatTemplateFile?: string;
  /** Kind huggingface: where the table of a tokenizer.json comes from; made here unless given. */
  readonly tables?: TableSource;
  /** Kind vllm: asks an engine. Needed. */
  readonly ask?: Ask;
  /** Kind vllm: bound on one question; 200 unless given. */
  readonly timeoutMillis?: number;
  /** Bounds of the memo of prefixes: messages, and bytes of them. 0 entries turn memo and cache off. */
  readonly memoEntriesMax?: number;
  readonly memoBytesMax?: number;
}

/**
 * Makes tokenizers that differ in nothing but the tokens per block: the engines' own block size; kind estimate takes 4
 * bytes for a token. What takes time and memory to load is loaded once.
 */
export type TokenizerOf = (blockTokens: number) => DescribedTokenizer;

/** Throws an error that names the file and what is accepted, where a tokenizer cannot be made. */
export async function loadTokenizer(options: LoadOptions): Promise<TokenizerOf> {
  const hasher = hasherOf(options.blockHash);
  const roots = rootsOf(options.blockHash, options.secret, options.engineChains ?? { models: [] });
  const memoEntriesMax = options.memoEntriesMax ?? MEMO_ENTRIES_MAX;
  const memoBytesMax = options.memoBytesMax ?? MEMO_BYTES_MAX;
  const chainsOf = (blockWords: number): PromptChains =>
    new PromptChains(hasher(blockWords), roots, { memoEntriesMax, memoBytesMax });
  const estimateOf = (blockTokens: number): TextTokenizer => estimate(chainsOf(blockTokens), chainsOf(blockTokens));
  switch (options.kind) {
    case "estimate":
      return estimateOf;
    case "character":
      return (blockTokens) =>
        new TextTokenizer({
          name: "character",
          chains: chainsOf(options.blockCharacters ?? BLOCK_CHARACTERS),
          tokenChains: chainsOf(blockTokens),
          source: new CharacterSource(),
          unitsPerWord: 1,
          unitsPerToken: CHARACTERS_PER_TOKEN,
          path: "blocks of characters, tokens estimated",
        });
    case "tiktoken": {
      const encoding = options.tiktokenEncoding ?? "cl100k_base";
      const source = new (await import("./tiktoken-source.ts")).TiktokenSource(encoding);
      return (blockTokens) => tiktoken(encoding, source, chainsOf(blockTokens), chainsOf(blockTokens));
    }
    case "huggingface": {
      const files = await readHuggingFaceFiles(needed(options, "tokenizerFile"), options.chatTemplateFile);
      const model = await loadHuggingFaceModel(files, options.tables ?? makeTable);
      const cache = new StepCache(memoEntriesMax === 0 ? 0 : Math.floor(STEP_CACHE_SHARE * memoBytesMax));
      return (blockTokens) => new HuggingFaceTokenizer(model, chainsOf(blockTokens), cache, estimateOf(blockTokens));
    }
    case "vllm": {
      const ask = needed(options, "ask");
      const timeoutMillis = options.timeoutMillis ?? TIMEOUT_MILLIS;
      return (blockTokens) => new VllmTokenizer(ask, chainsOf(blockTokens), estimateOf(blockTokens), timeoutMillis);
    }
  }
}

function estimate(chains: PromptChains, tokenChains: PromptChains): TextTokenizer {
  return new TextTokenizer({
    name: "estimate",
    chains,
    tokenChains,
    source: new ByteSource(),
    unitsPerWord: BYTES_PER_WORD,
    unitsPerToken: CHARACTERS_PER_TOKEN,
    path: "blocks of bytes, tokens estimated",
  });
}

function tiktoken(
  encoding: TiktokenEncoding,
  source: TiktokenSource,
  chains: PromptChains,
  tokenChains: PromptChains,
): TextTokenizer {
  return new TextTokenizer({
    name: "tiktoken",
    chains,
    tokenChains,
    source,
    unitsPerWord: 1,
    unitsPerToken: 1,
    path: `blocks of ${encoding} tokens`,
    close: () => source.close(),
  });
}

function needed<K extends "tokenizerFile" | "ask">(options: LoadOptions, name: K): NonNullable<LoadOptions[K]> {
  const value = options[name];
  if (value === undefined) throw new Error(`tokenizer: kind ${options.kind} needs ${name}`);
  return value;
}
