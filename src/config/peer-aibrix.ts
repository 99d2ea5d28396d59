import { completeProfile } from "#core/profile/check.ts";
import { shown } from "#core/plugin/parameter.ts";
import type { ScorerSpec } from "#core/plugin/spec.ts";
import { ConfigError } from "./config-error.ts";
import { loadNativeProfile, signalsAs, type NamedProfile } from "./native-profile.ts";
import { unknownWord } from "./problem.ts";

/** AIBrix's strategies by name: the profile that each is alone, and the scorer that it is in a composite. */
export const STRATEGIES: Readonly<
  Record<string, { readonly profile: string; readonly scorer?: Omit<ScorerSpec, "weight"> }>
> = {
  random: { profile: "random" },
  "least-request": { profile: "aibrix-least-request", scorer: { plugin: "least-request", parameters: {} } },
  "least-latency": { profile: "aibrix-least-latency", scorer: { plugin: "least-latency", parameters: {} } },
  throughput: { profile: "aibrix-throughput", scorer: { plugin: "throughput", parameters: {} } },
  "least-kv-cache": { profile: "aibrix-least-kv-cache", scorer: { plugin: "least-kv-cache", parameters: {} } },
  "least-utilization": {
    profile: "aibrix-least-utilization",
    scorer: { plugin: "utilization", parameters: { scale: "min-max" } },
  },
  "power-of-two": { profile: "power-of-two" },
  "prefix-cache": {
    profile: "aibrix-prefix-cache",
    scorer: { plugin: "prefix-affinity", parameters: { scale: "min-max" } },
  },
  // The documents' name of it in places.
  "prefix-aware": {
    profile: "aibrix-prefix-cache",
    scorer: { plugin: "prefix-affinity", parameters: { scale: "min-max" } },
  },
  "prefix-cache-preble": { profile: "preble" },
  "vtc-basic": { profile: "vtc-basic", scorer: { plugin: "vtc", parameters: {} } },
  "session-affinity": { profile: "sticky", scorer: { plugin: "session-affinity", parameters: {} } },
};

const WEIGHT_MAX = 1_000_000;

/** Whether it is one of AIBrix's strategies. */
export function isStrategy(text: string): boolean {
  return Object.hasOwn(STRATEGIES, text);
}

/** Whether a strategy is written with weights or as a list. */
export function isComposite(text: string): boolean {
  return /[:,]/.test(text);
}

/** The strategies that a text names, in its order, with their weights; those of weight 0 are left out. */
export function parseStrategies(text: string): { readonly name: string; readonly weight: number }[] {
  const parts = text.split(",").map((part) => part.trim());
  const strategies = parts.map((part) => {
    const [, name = "", weight = "1"] = /^([^:\s]+)(?::(\d+))?$/.exec(part) ?? [];
    if (name === "" || Number(weight) > WEIGHT_MAX) {
      throw new ConfigError([
        `strategy: expected name or name:weight with a whole weight from 0 to ${WEIGHT_MAX}, got ${shown(part)}`,
      ]);
    }
    return { name, weight: Number(weight) };
  });
  const counted = strategies.filter(({ weight }) => weight > 0);
  if (counted.length === 0) throw new ConfigError([`strategy: expected a weight above 0, got ${shown(text)}`]);
  return counted;
}

/**
 * A strategy as AIBrix's `routing-strategy` writes it. Alone it is the profile of that name; several are a weighted sum
 * of scores that are scaled between the candidates, ties at random. Throws ConfigError.
 */
export function aibrixProfile(text: string): NamedProfile {
  const strategies = parseStrategies(text);
  const [only] = strategies;
  const unknown = strategies.find(({ name }) => !Object.hasOwn(STRATEGIES, name));
  if (unknown !== undefined) {
    throw new ConfigError([`strategy: ${unknownWord("strategy", unknown.name, Object.keys(STRATEGIES))}`]);
  }
  if (only !== undefined && strategies.length === 1) return loadNativeProfile(STRATEGIES[only.name]!.profile);
  const scorers = strategies.map(({ name, weight }): ScorerSpec => {
    const scorer = STRATEGIES[name]?.scorer;
    if (scorer !== undefined) return { ...scorer, weight };
    const scoring = Object.entries(STRATEGIES).filter(([, one]) => one.scorer !== undefined);
    throw new ConfigError([
      `strategy: expected one that scores (${scoring.map(([key]) => key).join(", ")}), got ${name} beside others`,
    ]);
  });
  const doubled = strategies.find(({ name }, i) => strategies.findIndex((one) => one.name === name) !== i);
  if (doubled !== undefined) throw new ConfigError([`strategy: expected each once, got ${doubled.name} twice`]);
  return {
    name: strategies.map(({ name, weight }) => `${name}:${weight}`).join(","),
    summary: "a weighted sum of AIBrix's strategies",
    source: "AIBrix composite strategy",
    spec: completeProfile({
      scorers,
      picker: { plugin: "max-score", parameters: { tieBreak: "random", epsilon: 1e-9 } },
    }),
    ...signalsAs("aibrix-least-request"),
  };
}

/** Names under which a shipped profile may be asked for as AIBrix names it. */
export function aibrixNameOf(profile: string): string | undefined {
  return Object.keys(STRATEGIES).find((name) => STRATEGIES[name]?.profile === profile);
}
