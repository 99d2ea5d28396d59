import { CATALOG } from "#core/profile/catalog.ts";
import { type ParameterTable, checkParameters } from "#core/plugin/parameter.ts";
import type { ParameterValue, PluginSpec } from "#core/plugin/spec.ts";
import { ConfigError } from "./config-error.ts";
import type { NamedProfile } from "./native-profile.ts";
import type { Override } from "./override.ts";
import { aibrixProfile } from "./peer-aibrix.ts";

type Environment = Readonly<Record<string, string | undefined>>;

interface Target {
  readonly kind: "filters" | "scorers";
  readonly plugin: string;
  readonly parameter: string;
}

const PREFIX_CACHE = "AIBRIX_PREFIX_CACHE_";
const VTC = "AIBRIX_ROUTER_VTC_";

const vtc = (parameter: string): Target => ({ kind: "scorers", plugin: "vtc", parameter });

/** AIBrix variables that set a parameter of a plugin, in every profile that has it. */
export const AIBRIX_PARAMETERS: Readonly<Record<string, Target>> = {
  [`${PREFIX_CACHE}POD_RUNNING_REQUEST_IMBALANCE_ABS_COUNT`]: {
    kind: "filters",
    plugin: "imbalance-gate",
    parameter: "absolute",
  },
  [`${PREFIX_CACHE}STANDARD_DEVIATION_FACTOR`]: {
    kind: "filters",
    plugin: "prefix-match",
    parameter: "deviationFactor",
  },
  [`${VTC}TOKEN_TRACKER_TIME_UNIT`]: vtc("windowUnit"),
  [`${VTC}TOKEN_TRACKER_WINDOW_SIZE`]: vtc("windowSize"),
  [`${VTC}TOKEN_TRACKER_MIN_TOKENS`]: vtc("minTokens"),
  [`${VTC}TOKEN_TRACKER_MAX_TOKENS`]: vtc("maxTokens"),
  [`${VTC}BASIC_INPUT_TOKEN_WEIGHT`]: vtc("inputTokenWeight"),
  [`${VTC}BASIC_OUTPUT_TOKEN_WEIGHT`]: vtc("outputTokenWeight"),
  [`${VTC}BASIC_MAX_POD_LOAD`]: vtc("maxPodLoad"),
  [`${VTC}BASIC_FAIRNESS_WEIGHT`]: vtc("fairnessWeight"),
  [`${VTC}BASIC_UTILIZATION_WEIGHT`]: vtc("utilizationWeight"),
};

/** Tokens of a block of the index where AIBrix's block size is not given, or counts characters. */
const BLOCK_TOKENS = 16;

/**
 * What AIBrix's other variables mean for this configuration: the strategy (routing.profile), the tokenizer
 * (tokenizer.kind), the block (tokenizer.blockCharacters of characters, else prefix.blockTokens) and the room of the
 * index (prefix.capacityTokens, per endpoint here, while the engine has not reported its own). As in AIBrix the tokenizer
 * is `character` where any of these variables is there and neither it nor the file states another. Throws ConfigError for
 * a value outside what AIBrix accepts.
 */
export function aibrixOverrides(environment: Environment): Override[] {
  const overrides: Override[] = [];
  const add = (name: string, path: readonly string[], value: unknown) => overrides.push({ path, value, from: name });
  const algorithm = environment["AIBRIX_ROUTING_ALGORITHM"];
  if (algorithm !== undefined) {
    add("AIBRIX_ROUTING_ALGORITHM", ["routing", "profile"], strategyOf(algorithm));
  }
  const typeName = `${PREFIX_CACHE}TOKENIZER_TYPE`;
  const type = environment[typeName];
  if (type !== undefined && type !== "character" && type !== "tiktoken") {
    throw new ConfigError([`${typeName}: expected character or tiktoken, got ${JSON.stringify(type)}`]);
  }
  if (type !== undefined) add(typeName, ["tokenizer", "kind"], type);
  else if (isAibrix(environment)) {
    overrides.push({ path: ["tokenizer", "kind"], value: "character", from: "AIBRIX_*", yields: true });
  }
  const countsCharacters = type !== "tiktoken";
  const sizeName = `${PREFIX_CACHE}BLOCK_SIZE`;
  const numberName = `${PREFIX_CACHE}BLOCK_NUMBER`;
  const size = positive(sizeName, environment[sizeName]);
  const number = positive(numberName, environment[numberName]);
  const block = countsCharacters ? ["tokenizer", "blockCharacters"] : ["prefix", "blockTokens"];
  if (size !== undefined) add(sizeName, block, size);
  if (number !== undefined) {
    add(numberName, ["prefix", "capacityTokens"], number * (countsCharacters ? BLOCK_TOKENS : (size ?? BLOCK_TOKENS)));
  }
  return overrides;
}

/** Whether it is one in which AIBrix's gateway was configured. */
function isAibrix(environment: Environment): boolean {
  return Object.keys(environment).some((name) => name === "AIBRIX_ROUTING_ALGORITHM" || name.startsWith(PREFIX_CACHE));
}

function strategyOf(algorithm: string): string {
  try {
    const { name } = aibrixProfile(algorithm);
    return name;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError(error.lines.map((line) => line.replace(/^strategy/, "AIBRIX_ROUTING_ALGORITHM")));
  }
}

function positive(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new ConfigError([`${name}: expected a whole number above 0, got ${JSON.stringify(text)}`]);
}

/** The profile with the parameters that variables set, in the plugins that have them. Throws ConfigError. */
export function withAibrixParameters(profile: NamedProfile, environment: Environment): NamedProfile {
  const given = Object.entries(AIBRIX_PARAMETERS).flatMap(([name, target]) => {
    const text = environment[name];
    return text === undefined ? [] : [{ ...target, value: valueOf(name, target, text) }];
  });
  if (given.length === 0) return profile;
  const set = <T extends PluginSpec>(kind: Target["kind"], plugins: readonly T[]): T[] =>
    plugins.map((one) => {
      const own = given.filter((target) => target.kind === kind && target.plugin === one.plugin);
      const values = Object.fromEntries(own.map(({ parameter, value }) => [parameter, value]));
      return { ...one, parameters: { ...one.parameters, ...values } };
    });
  const { filters, scorers, picker } = profile.spec;
  return { ...profile, spec: { filters: set("filters", filters), scorers: set("scorers", scorers), picker } };
}

function valueOf(name: string, { kind, plugin, parameter }: Target, text: string): ParameterValue {
  const tables: Readonly<Record<string, { readonly parameters: ParameterTable }>> = CATALOG[kind];
  const table = tables[plugin]!.parameters;
  const value = table[parameter]!.type === "choice" ? text : text.trim() === "" ? NaN : Number(text);
  const problem = checkParameters(table, { [parameter]: value }, "")[0];
  if (problem !== undefined) throw new ConfigError([`${name}: ${problem.message}`]);
  return value;
}
