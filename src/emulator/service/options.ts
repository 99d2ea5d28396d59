import { type EngineConfig, roomTokens } from "#engine/config.ts";
import { KV_TRANSFER_DEFAULTS, type KvTransferOptions } from "../kv-transfer/kv-transfer.ts";
import type { KvEventOptions } from "../kv-events/publisher.ts";
import type { LibraryTokenizerFiles } from "../tokenizer/library-tokenizer.ts";

/** A LoRA adapter, served under a name of its own. */
export interface Adapter {
  readonly name: string;
  readonly path: string;
}

/** A pooling model (--runner pooling): nothing is generated. */
export interface PoolingOptions {
  readonly task: "embed" | "classify";
  /** Numbers of what it makes of a prompt: dimensions, or classes. With one class it scores pairs of texts. */
  readonly size: number;
}

/** One emulated vLLM server. Names without a unit are vLLM's flags. */
export interface EmulatorOptions {
  readonly host: string;
  /** 0 for any free port. */
  readonly port: number;
  /** Name of the model, first of those that /v1/models lists. */
  readonly model: string;
  /** Further names of the same model. */
  readonly servedModels?: readonly string[];
  readonly adapters?: readonly Adapter[];
  /** Adapters may be loaded and unloaded while it runs (VLLM_ALLOW_RUNTIME_LORA_UPDATING). */
  readonly runtimeAdapters?: boolean;
  readonly engine: EngineConfig;
  /** Engine seconds per second of the wall clock: 2 runs twice as fast. */
  readonly timeScale: number;
  /** Of ids and of fault draws. The text of an answer depends on its prompt alone. */
  readonly seed: number;
  readonly apiKey?: string;
  readonly version?: "0.32.0";
  /** Undefined for the emulator's own tokenizer. */
  readonly tokenizer?: LibraryTokenizerFiles;
  /** Mean length of an answer that ends on its own. */
  readonly naturalTokensMean?: number;
  readonly enablePromptTokensDetails?: boolean;
  readonly forceIncludeUsage?: boolean;
  readonly enableRequestIdHeaders?: boolean;
  /** Answers to tool choices: --enable-auto-tool-choice together with a --tool-call-parser. */
  readonly enableAutoToolChoice?: boolean;
  readonly serverLoadTracking?: boolean;
  /** Waiting requests from which new ones are refused (--max-num-queued-reqs). */
  readonly queuedRequestsMax?: number;
  /** Waiting prompt tokens from which new requests are refused (--max-num-queued-tokens). */
  readonly queuedTokensMax?: number;
  /** 0: SIGTERM ends every answer at once. More: running answers may end by themselves for that long. */
  readonly shutdownTimeoutSeconds?: number;
  /** Publishes KV events; undefined for a server that does not. */
  readonly kvEvents?: KvEventOptions;
  /** A KV connector as vLLM's NIXL connector; undefined for a server that has none. */
  readonly kvTransfer?: Partial<KvTransferOptions>;
  /** What the model is for; it generates where this is left out. */
  readonly pooling?: PoolingOptions;
  /** Answers /sleep, /wake_up and /is_sleeping: --enable-sleep-mode, in vLLM's development mode. */
  readonly sleepMode?: boolean;
  /** Answers faults ordered by header or admin call. */
  readonly faults?: boolean;
}

/** Options with every default in place. */
export type ResolvedOptions = Omit<
  Required<EmulatorOptions>,
  "tokenizer" | "queuedRequestsMax" | "queuedTokensMax" | "kvEvents" | "kvTransfer" | "pooling"
> & {
  readonly pooling: PoolingOptions | undefined;
  readonly kvTransfer: KvTransferOptions | undefined;
  readonly kvEvents: KvEventOptions | undefined;
  readonly tokenizer: LibraryTokenizerFiles | undefined;
  readonly queuedRequestsMax: number;
  readonly queuedTokensMax: number;
};

const NATURAL_TOKENS_MEAN = 160;
const POOLING_SIZE_MAX = 16_384;

/** Throws an Error that names the option, its value and what is accepted. */
export function resolveOptions(options: EmulatorOptions): ResolvedOptions {
  check(options);
  return {
    servedModels: [],
    adapters: [],
    runtimeAdapters: false,
    apiKey: "",
    version: "0.32.0",
    naturalTokensMean: NATURAL_TOKENS_MEAN,
    enablePromptTokensDetails: true,
    forceIncludeUsage: false,
    enableRequestIdHeaders: false,
    enableAutoToolChoice: true,
    serverLoadTracking: false,
    queuedRequestsMax: Number.POSITIVE_INFINITY,
    queuedTokensMax: Number.POSITIVE_INFINITY,
    shutdownTimeoutSeconds: 0,
    sleepMode: false,
    faults: true,
    ...options,
    pooling: options.pooling,
    tokenizer: options.tokenizer,
    kvEvents: options.kvEvents,
    kvTransfer: options.kvTransfer && { ...KV_TRANSFER_DEFAULTS, ...options.kvTransfer },
  };
}

function check(options: EmulatorOptions): void {
  const { engine, timeScale, model, naturalTokensMean = NATURAL_TOKENS_MEAN } = options;
  if (model === "") throw new Error('model: is "", accepted is a name');
  if (!(timeScale > 0 && timeScale <= 1_000)) throw new Error(`timeScale: is ${timeScale}, accepted is (0, 1000]`);
  if (!(naturalTokensMean >= 1)) throw new Error(`naturalTokensMean: is ${naturalTokensMean}, accepted is 1 or more`);
  const size = options.pooling?.size ?? 1;
  if (!(Number.isInteger(size) && size >= 1 && size <= POOLING_SIZE_MAX)) {
    throw new Error(`pooling.size: is ${size}, accepted is an integer in [1, ${POOLING_SIZE_MAX}]`);
  }
  const tokensMax = roomTokens(engine);
  if (engine.modelTokensMax > tokensMax) {
    const room = `(kvBlocks - 1) * blockTokens = ${tokensMax}`;
    throw new Error(`engine.modelTokensMax: is ${engine.modelTokensMax}, accepted is at most ${room}`);
  }
}
