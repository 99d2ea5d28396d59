import type { Logger } from "pino";
import { TokenizeQuestions } from "#live/tokenizer/tokenize-question.ts";
import type { EndpointDirectory } from "#live/discovery/endpoint-directory.ts";
import { type TokenizerOptions, createTokenizer } from "#live/tokenizer/create.ts";
import type { DescribedTokenizer } from "#live/tokenizer/described-tokenizer.ts";
import type { TokenizerCounts } from "#live/metrics/metric-state.ts";
import type { Tokenizer } from "#live/tokenizer/tokenizer.ts";
import { ConfigError } from "#config/config-error.ts";
import type { Config, TokenizerConfig } from "#config/schema.ts";

/** The tokenizers of a gateway, one per model that the configuration names and one for all others. */
export interface Tokenizers {
  of(model: string): Tokenizer;
  /** What each has counted, by the model that it is for, "" for all others. */
  readonly counts: () => readonly TokenizerCounts[];
  close(): Promise<void>;
}

/** What every tokenizer of a gateway shares. */
export interface TokenizerSurroundings {
  readonly config: Config;
  /** Keys the block hashes. */
  readonly secret: Uint8Array;
  readonly directory: EndpointDirectory;
  readonly log: Logger;
}

/** Loads every tokenizer that the configuration names; throws ConfigError with all that cannot be loaded. */
export async function openTokenizers(surroundings: TokenizerSurroundings): Promise<Tokenizers> {
  const { models, ...fallback } = surroundings.config.tokenizer;
  const questions = new TokenizeQuestions(surroundings.directory);
  const problems: string[] = [];
  const open = async (path: string, one: TokenizerConfig): Promise<DescribedTokenizer | undefined> => {
    try {
      const tokenizer = await createTokenizer(optionsOf(one, surroundings, questions));
      const { name, path: way, reason } = tokenizer.describe();
      surroundings.log.info({ for: path, kind: name, way, reason }, "tokenizer");
      return tokenizer;
    } catch (error) {
      problems.push(`${path}: ${error instanceof Error ? error.message : String(error)}`);
      return undefined;
    }
  };
  const byModel = new Map<string, DescribedTokenizer>();
  for (const [model, one] of Object.entries(models)) {
    const tokenizer = await open(`tokenizer.models[${JSON.stringify(model)}]`, one);
    if (tokenizer !== undefined) byModel.set(model, tokenizer);
  }
  const others = await open("tokenizer", fallback);
  if (others === undefined || problems.length > 0) throw new ConfigError(problems);
  return {
    of: (model) => byModel.get(model) ?? others,
    counts: () => [...byModel, ["", others] as const].map(([model, one]) => ({ model, ...one.describe() })),
    close: async () => {
      for (const tokenizer of [...byModel.values(), others]) tokenizer.close();
      await questions.close();
    },
  };
}

function optionsOf(
  one: TokenizerConfig,
  { config, secret }: TokenizerSurroundings,
  questions: TokenizeQuestions,
): TokenizerOptions {
  const { blockTokens, blockHash } = config.prefix;
  return {
    kind: one.kind,
    blockTokens,
    blockHash,
    secret,
    blockCharacters: one.blockCharacters,
    tiktokenEncoding: one.encoding,
    ask: questions.ask,
    timeoutMillis: one.timeoutMillis,
    memoEntriesMax: one.memoEntriesMax,
    memoBytesMax: one.memoBytesMax,
    ...(one.file === undefined ? {} : { tokenizerFile: one.file }),
    ...(one.chatTemplate === undefined ? {} : { chatTemplateFile: one.chatTemplate }),
  };
}
