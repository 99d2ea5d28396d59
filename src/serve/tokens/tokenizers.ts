import type { Logger } from "pino";
import { TokenizeQuestions } from "#live/tokenizer/tokenize-question.ts";
import type { EngineConnections } from "#live/tls/connections.ts";
import type { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import { type TokenizerOf, type LoadOptions, loadTokenizer } from "#live/tokenizer/create.ts";
import type { EngineChains } from "#live/tokenizer/chain-hash.ts";
import type { DescribedTokenizer } from "#live/tokenizer/described-tokenizer.ts";
import type { TokenizerCounts } from "#live/metrics/metric-state.ts";
import type { Tokenizer } from "#live/tokenizer/text/tokenizer.ts";
import { keptTables } from "#live/tokenizer/table/kept-tables.ts";
import type { TableSource } from "#live/tokenizer/table/table-source.ts";
import { ConfigError } from "#config/config-error.ts";
import type { Config, TokenizerConfig } from "#config/schema.ts";
import { tableFolder } from "./table-folder.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";

/** The tokenizers of a gateway, one per model that the configuration names and one for all others. */
export interface Tokenizers {
  readonly of: (model: string) => Tokenizer;
  /** From now on prompts are cut into blocks of so many tokens; those being encoded keep the ones that they have. */
  resizeBlocks(blockTokens: number): void;
  /** What each has counted, by the model that it is for, "" for all others. */
  readonly counts: () => readonly TokenizerCounts[];
  close(): Promise<void>;
}

/** What every tokenizer of a gateway shares. */
interface TokenizerSurroundings {
  readonly config: Config;
  /** Keys the block hashes. */
  readonly secret: Uint8Array;
  readonly directory: EndpointDirectory;
  readonly connections: EngineConnections;
  readonly log: Logger;
  readonly blockTokens: number;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Where tables come from; made or read here unless given. */
  readonly tables?: TableSource | undefined;
}

/** A tokenizer at the block size in force, and how to make it at another one. */
interface Sized {
  readonly make: TokenizerOf;
  current: DescribedTokenizer;
}

/** Loads every tokenizer that the configuration names; throws ConfigError with all that cannot be loaded. */
async function openTokenizers(surroundings: TokenizerSurroundings): Promise<Tokenizers> {
  const { models, ...fallback } = surroundings.config.tokenizer;
  const questions = new TokenizeQuestions(surroundings.directory, surroundings.connections);
  const problems: string[] = [];
  const open = async (path: string, one: TokenizerConfig): Promise<Sized | undefined> => {
    try {
      const make = await loadTokenizer(optionsOf(one, surroundings, questions));
      const current = make(surroundings.blockTokens);
      const { name, path: way, reason } = current.describe();
      surroundings.log.info({ for: path, kind: name, way, reason }, "tokenizer");
      return { make, current };
    } catch (error) {
      problems.push(`${path}: ${error instanceof Error ? error.message : String(error)}`);
      return undefined;
    }
  };
  const byModel = new Map<string, Sized>();
  for (const [model, one] of Object.entries(models)) {
    const tokenizer = await open(`tokenizer.models[${JSON.stringify(model)}]`, one);
    if (tokenizer !== undefined) byModel.set(model, tokenizer);
  }
  const others = await open("tokenizer", fallback);
  if (others === undefined || problems.length > 0) throw new ConfigError(problems);
  return {
    of: (model) => (byModel.get(model) ?? others).current,
    resizeBlocks: (blockTokens) => {
      for (const one of [...byModel.values(), others]) one.current = one.make(blockTokens);
    },
    counts: () => [...byModel, ["", others] as const].map(([model, { current }]) => ({ model, ...current.describe() })),
    close: async () => {
      for (const { current } of [...byModel.values(), others]) current.close();
      await questions.close();
    },
  };
}

/** What is configured of engines whose hashes are made here. */
export function engineChainsOf({ prefix }: Config): EngineChains {
  return { seed: prefix.engineSeed, models: prefix.engineModels };
}

function optionsOf(
  one: TokenizerConfig,
  { config, secret, environment, tables }: TokenizerSurroundings,
  questions: TokenizeQuestions,
): LoadOptions {
  return {
    kind: one.kind,
    blockHash: config.prefix.blockHash,
    engineChains: engineChainsOf(config),
    secret,
    blockCharacters: one.blockCharacters,
    tiktokenEncoding: one.encoding,
    tables: tables ?? keptTables(tableFolder(config, environment)),
    ask: questions.ask,
    timeoutMillis: one.timeoutMillis,
    memoEntriesMax: one.memoEntriesMax,
    memoBytesMax: one.memoBytesMax,
    ...(one.file === undefined ? {} : { tokenizerFile: one.file }),
    ...(one.chatTemplate === undefined ? {} : { chatTemplateFile: one.chatTemplate }),
  };
}

interface Needed extends Omit<GatewayContext, "logLinesDropped"> {
  readonly secret: Uint8Array;
  readonly directory: EndpointDirectory;
  readonly tls: { readonly connections: EngineConnections };
  readonly settings: { readonly blockTokens: number };
}

export const tokenizersPart = part({
  name: "tokenizers",
  needs: ["plan", "environment", "log", "secret", "directory", "tls", "settings"],
  start: ({ plan, tls: { connections }, settings: { blockTokens }, ...rest }: Omit<Needed, "leaving">) =>
    openTokenizers({ ...rest, config: plan.config, tables: plan.tables, connections, blockTokens }),
  stop: (tokenizers) => tokenizers.close(),
});
