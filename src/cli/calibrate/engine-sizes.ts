import { RARE, rareOption } from "#drive/rare-option.ts";
import { type Command, InvalidArgumentError, Option } from "commander";
import { ConfigError } from "#config/config-error.ts";
import { BLOCK_TOKENS_MAX, DATA_PARALLEL_MAX, KV_BLOCKS_MAX } from "#config/schema-value.ts";
import type { EngineConfig } from "#engine/config.ts";
import { recordedSizes } from "#shadow/calibrate/recorded-sizes.ts";
import type { Observed } from "#shadow/recorded/observed.ts";
import type { RecordedRun } from "#shadow/recorded/recorded-run.ts";

/** Settings of an engine that are not its speed. */
export interface SizeFlags {
  readonly blockTokens?: number;
  readonly kvBlocks?: number;
  readonly sequencesMax?: number;
  readonly batchTokensMax?: number;
  readonly modelTokensMax?: number;
  readonly asyncScheduling?: boolean;
  readonly dataParallel?: number;
  readonly sizes: "trace" | "engine";
}

const SIZES = [
  "blockTokens",
  "kvBlocks",
  "sequencesMax",
  "batchTokensMax",
  "modelTokensMax",
  "longPrefillTokens",
  "prefixCaching",
  "reserveFullPrompt",
  "chunkedPrefill",
  "asyncScheduling",
  "dataParallel",
] as const satisfies readonly (keyof EngineConfig)[];
type Size = (typeof SIZES)[number];

/** What every command takes that simulates the engines of a trace. */
export function addSizeFlags(command: Command): Command {
  const whole = wholeIn(1, Number.MAX_SAFE_INTEGER);
  // One of the KV blocks is reserved.
  return command
    .addOption(
      rareOption(
        "--block-tokens <n>",
        "tokens per KV block (default: the trace's, else what cached tokens show)",
        wholeIn(1, BLOCK_TOKENS_MAX),
      ),
    )
    .addOption(
      rareOption(
        "--kv-blocks <n>",
        "num_gpu_blocks (default: the trace's, else what the endpoints reported)",
        wholeIn(2, KV_BLOCKS_MAX),
      ),
    )
    .addOption(
      rareOption("--sequences-max <n>", "max_num_seqs (default: the trace's, else what the endpoints reported)", whole),
    )
    .addOption(
      rareOption("--batch-tokens-max <n>", "max_num_batched_tokens (default: the trace's, else the engine's)", whole),
    )
    .addOption(
      rareOption(
        "--model-tokens-max <n>",
        "max_model_len (default: the trace's, else the engine's or what is needed)",
        whole,
      ),
    )
    .addOption(
      rareOption(
        "--data-parallel <n>",
        "data_parallel_size behind each endpoint; the sizes above are per rank (default: the trace's, else the engine's)",
        wholeIn(1, DATA_PARALLEL_MAX),
      ),
    )
    .addOption(
      rareOption(
        "--async-scheduling",
        "the engine schedules a step while the previous one runs, as on GPUs (default: the trace's, else what calibrate finds)",
      ),
    )
    .addOption(rareOption("--no-async-scheduling", "the engine does not do that"))
    .addOption(
      new Option("--sizes <from>", "whose settings apply if both state them: those of the trace or of --engine")
        .choices(["trace", "engine"])
        .default("trace")
        .helpGroup(RARE),
    );
}

/** An engine with the settings of those that served a trace, and a line on where each comes from. */
export interface SizedEngine {
  readonly engine: EngineConfig;
  readonly notes: readonly string[];
  /** Flags or trace state whether it composes its steps ahead. */
  readonly statesScheduling: boolean;
}

/**
 * Settings given by flags, then by the trace, then by the engine; its times stay. Requests that were answered show that the
 * engine took them, however long the ones were that its file comes from. With `fit` nothing but the trace is
 * there to show what the engine was: a KV cache of unstated size holds all that was in flight at once, and a request
 * that does not fit is refused. Throws ConfigError.
 */
export function sizedEngine(base: EngineConfig, run: RecordedRun, flags: SizeFlags, fit: boolean): SizedEngine {
  const fallback = fit ? undefined : base.blockTokens;
  const recorded = flags.sizes === "engine" ? NOTHING : recordedSizes(run, flags.blockTokens, fallback);
  const given = givenSizes(flags);
  const stated: Partial<EngineConfig> = { ...recorded.sizes, ...given };
  const sized = { ...base, ...stated };
  const notes = [...recorded.notes];
  let { kvBlocks } = sized;
  if (fit && stated.kvBlocks === undefined) {
    kvBlocks = Math.max(kvBlocks, blocksInFlight(run, sized.blockTokens) + 1);
    notes.push(`kvBlocks ${kvBlocks}: not stated, so many that all requests in flight at once have room`);
  }
  const longest = longestOf(run, () => true);
  const room = (kvBlocks - 1) * sized.blockTokens;
  const shown = fit ? longest : flags.sizes === "engine" ? 0 : longestOf(run, ({ ok }) => ok);
  const wanted = stated.modelTokensMax ?? Math.max(base.modelTokensMax, shown);
  if (!fit && wanted > base.modelTokensMax && stated.modelTokensMax === undefined)
    notes.push(`modelTokensMax ${wanted}: the longest that was answered (--engine has ${base.modelTokensMax})`);
  if (fit && (longest > room || longest > wanted || (flags.modelTokensMax ?? 0) > room)) {
    throw new ConfigError([
      `--model-tokens-max: expected ${longest} (the longest request) to ${room} (what ${kvBlocks} KV blocks of ` +
        `${sized.blockTokens} hold), got ${Math.min(wanted, room)}`,
    ]);
  }
  const engine = { ...sized, kvBlocks, modelTokensMax: Math.min(wanted, room) };
  const compared = fit ? undefined : base;
  return {
    engine,
    notes: [...notes, ...differences(engine, compared, given, recorded.sizes)],
    statesScheduling: stated.asyncScheduling !== undefined,
  };
}

/** Tokens of the longest request, of those of which `isMeant`. */
function longestOf({ workload, observed }: RecordedRun, isMeant: (seen: Observed) => boolean): number {
  return workload.reduce(
    (most, one, i) => (isMeant(observed[i]!) ? Math.max(most, one.promptTokens + one.outputTokens) : most),
    0,
  );
}

/** The settings that flags give. */
export function givenSizes(flags: SizeFlags): Partial<Pick<EngineConfig, Size>> {
  const { blockTokens, kvBlocks, sequencesMax, batchTokensMax, modelTokensMax, asyncScheduling, dataParallel } = flags;
  const all = { blockTokens, kvBlocks, sequencesMax, batchTokensMax, modelTokensMax, asyncScheduling, dataParallel };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

const NOTHING = { sizes: {}, notes: [] };

/** Which settings are not the engine's own, whose they are, and what an engine to compare with has. */
function differences(
  engine: EngineConfig,
  base: EngineConfig | undefined,
  given: Partial<EngineConfig>,
  recorded: Partial<EngineConfig>,
): string[] {
  const lists = { flags: [] as string[], trace: [] as string[] };
  for (const name of SIZES) {
    const from = given[name] !== undefined ? "flags" : recorded[name] !== undefined ? "trace" : undefined;
    if (from === undefined) continue;
    const other = base === undefined || base[name] === engine[name] ? "" : ` (--engine has ${base[name]})`;
    lists[from].push(`${name} ${engine[name]}${other}`);
  }
  const lines = [];
  if (lists.trace.length > 0) lines.push(`of the trace: ${lists.trace.join(", ")}`);
  if (lists.flags.length > 0) lines.push(`as given: ${lists.flags.join(", ")}`);
  return lines;
}

/** Most KV blocks that requests in flight at one endpoint could hold at once. */
function blocksInFlight({ workload, observed }: RecordedRun, blockTokens: number): number {
  const changes = new Map<string, (readonly [at: number, blocks: number])[]>();
  workload.forEach(({ arrivalMicros, promptTokens, outputTokens }, i) => {
    const { endpoint, e2eMicros } = observed[i]!;
    const here = changes.get(endpoint) ?? [];
    changes.set(endpoint, here);
    const blocks = Math.ceil((promptTokens + outputTokens) / blockTokens);
    here.push([arrivalMicros, blocks], [arrivalMicros + (e2eMicros || 0), -blocks]);
  });
  let most = 0;
  for (const list of changes.values()) {
    let held = 0;
    for (const [, blocks] of list.sort((a, b) => a[0] - b[0] || b[1] - a[1])) {
      held += blocks;
      most = Math.max(most, held);
    }
  }
  return most;
}

function wholeIn(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!Number.isSafeInteger(value) || value < min || value > max)
      throw new InvalidArgumentError(`expected a whole number of ${min} to ${max}`);
    return value;
  };
}
