import { type TokenizerOptions, createTokenizer } from "#live/tokenizer/create.ts";
import type { Tokenizer } from "#live/tokenizer/tokenizer.ts";
import { ConfigError } from "#config/config-error.ts";
import type { Config, TokenizerConfig } from "#config/schema.ts";

/** The tokenizers of a gateway, one per model that the configuration names and one for all others. */
export interface Tokenizers {
  of(model: string): Tokenizer;
  close(): void;
}

/** Loads every tokenizer that the configuration names; throws ConfigError with all that cannot be loaded. */
export async function openTokenizers(config: Config, secret: Uint8Array): Promise<Tokenizers> {
  const { models, ...fallback } = config.tokenizer;
  const problems: string[] = [];
  const open = async (path: string, one: TokenizerConfig): Promise<Tokenizer | undefined> => {
    try {
      return await createTokenizer(optionsOf(one, config, secret));
    } catch (error) {
      problems.push(`${path}: ${error instanceof Error ? error.message : String(error)}`);
      return undefined;
    }
  };
  const byModel = new Map<string, Tokenizer>();
  for (const [model, one] of Object.entries(models)) {
    const tokenizer = await open(`tokenizer.models[${JSON.stringify(model)}]`, one);
    if (tokenizer !== undefined) byModel.set(model, tokenizer);
  }
  const others = await open("tokenizer", fallback);
  if (others === undefined || problems.length > 0) throw new ConfigError(problems);
  return {
    of: (model) => byModel.get(model) ?? others,
    close: () => [...byModel.values(), others].forEach((tokenizer) => tokenizer.close()),
  };
}

function optionsOf(one: TokenizerConfig, config: Config, secret: Uint8Array): TokenizerOptions {
  const { blockTokens, blockHash } = config.prefix;
  if (one.kind !== "estimate" && one.kind !== "character") throw new Error(`kind ${one.kind} is not available`);
  return { kind: one.kind, blockTokens, blockHash, secret };
}
