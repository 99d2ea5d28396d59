import { loadProfile } from "#config/profile-file.ts";
import { nameHash, randomFor } from "#core/base/random.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { Decision } from "#core/input/decision.ts";
import type { ScorerSpec } from "#core/plugin/spec.ts";
import type { StepDrift } from "#engine/step-drift.ts";
import type { Endpoint } from "#core/endpoint/endpoint.ts";
import type { BlockChain } from "#core/prompt/block-chain.ts";
import type { Insertion, PrefixIndex } from "#core/prefix/prefix-index.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import { type Setting, simulationOf } from "#shadow/candidate/candidate.ts";
import type { SignalOptions } from "#sim/setting/signal-options.ts";
import { Simulation } from "#sim/simulation.ts";
import { breakdownDigest, type RecordedDecision, type TraceHeader, type TraceItem } from "#trace/codec/record.ts";
import { ImportReport } from "#trace/import/import-report.ts";
import { synthesize } from "#trace/import/synthetic.ts";
import { parseSyntheticSpec } from "#trace/import/synthetic-spec.ts";

export const INJECTED = ["index", "cache", "tenant", "engines", "policy"] as const;
export type Injected = (typeof INJECTED)[number];

export interface InjectedCase {
  readonly cause: Injected | "none";
  readonly seed: number;
  readonly conversations: number;
  /** Conversations that begin in a second. */
  readonly rate?: number;
}

/** What the trace states of its engines, and what they are where nothing is injected. */
export const ENGINE: EngineConfig = engineDefaults({ kvBlocks: 8_000 });
const SMALL_CACHE_BLOCKS = 1_400;
const SLOW_FACTOR = 2;
const HOT_WEIGHT = 1.2;
const BLOCK_TOKENS = 16;
/** How gauges reach the gateway. */
export const SIGNALS: SignalOptions = {
  mode: "scrape",
  intervalMicros: 500_000,
  phase: "spread",
  delayMicros: 0,
  lossShare: 0,
};

/**
 * A recorded trace of four engines before which one thing is wrong:
 * - index: the gateway takes each engine's cache for its neighbour's
 * - cache: the engines have room for a sixth of the blocks
 * - tenant: one tenant among four sends prompts of thousands of tokens
 * - engines: one engine's steps take twice as long
 * - policy: prefixes weigh a hundredth of what they should
 */
export function injectedTrace({ cause, seed, conversations, rate = 11 }: InjectedCase): TraceItem[] {
  const kvBlocks = cause === "cache" ? SMALL_CACHE_BLOCKS : ENGINE.kvBlocks;
  const engine = { ...ENGINE, kvBlocks };
  const endpoints = ["e0", "e1", "e2", "e3"].map((id): Endpoint => {
    const kvCapacityTokens = (kvBlocks - 1) * BLOCK_TOKENS;
    return { id, models: [], labels: {}, kvCapacityTokens, concurrencyMax: engine.sequencesMax };
  });
  const name = "llm-d";
  const good = loadProfile(name).spec;
  const spec = cause === "policy" ? { ...good, scorers: good.scorers.map(withBadWeight) } : good;
  const setting: Setting = {
    seed,
    workload: [
      ...synthesize(
        parseSyntheticSpec("why", specOf(cause, conversations, rate)),
        seed,
        new ImportReport("why", "synthetic", true),
      ),
    ],
    endpoints,
    fleetEvents: [],
    engine,
    signals: SIGNALS,
    blockTokens: BLOCK_TOKENS,
    staleAfterMicros: 2_000_000,
    requestMicros: 0,
    answerMicros: 0,
    rateScale: 1,
  };
  const options = simulationOf(setting, { name, spec }, 0);
  const items: TraceItem[] = [{ kind: "run", header: headerOf(setting, name, spec, engine) }];
  const simulation = new Simulation({
    ...options,
    engines: options.engines.map((one, place) => ({
      ...one,
      config: {
        ...one.config,
        stepDrift: wandering(seed, place, cause === "engines" && place === 0 ? SLOW_FACTOR : 1),
      },
    })),
    ...(cause === "index" && { prefixes: { kind: "index", create: () => new NeighbourIndex() } as const }),
    observe: (input, decision) => void items.push({ kind: "record", input, decision: decision && recorded(decision) }),
  });
  simulation.run();
  return items;
}

/** Prefixes weigh a hundredth of what they did. */
function withBadWeight(scorer: ScorerSpec): ScorerSpec {
  return scorer.plugin === "prefix-affinity" ? { ...scorer, weight: scorer.weight / 100 } : scorer;
}

/** Steps that no model knows: by the second, up to a tenth shorter or longer. */
function wandering(seed: number, place: number, factor: number): StepDrift {
  const random = randomFor(seed, nameHash(`drift ${place}`));
  const factors = Float64Array.from({ length: 128 }, () => factor * (0.9 + random.below(2_000) / 10_000));
  return { windowMicros: MICROS_PER_SECOND, factors };
}

function recorded(decision: Decision): RecordedDecision {
  const { candidates, scorers, values, totals, clamped } = decision.breakdown;
  const breakdown = { candidates, scorers, values, totals, clamped };
  return {
    ...decision,
    breakdown: { ...breakdown, endpointCount: candidates.length, digest: breakdownDigest(breakdown) },
  };
}

/** Takes each endpoint's blocks for those of the one that joined after it. */
class NeighbourIndex implements PrefixIndex {
  readonly #index = new ApproximateIndex();
  #slots: number[] = [];

  join(endpoint: string, capacityBlocks: number): number {
    const slot = this.#index.join(endpoint, capacityBlocks);
    this.#slots.push(slot);
    return slot;
  }

  leave(slot: number): void {
    this.#index.leave(slot);
    this.#slots = this.#slots.filter((one) => one !== slot);
  }

  resize(slot: number, capacityBlocks: number): void {
    this.#index.resize(slot, capacityBlocks);
  }

  clear(slot: number): void {
    this.#index.clear(slot);
  }

  match(chain: BlockChain, hits: Int32Array): void {
    this.#index.match(chain, hits);
    const were = this.#slots.map((slot) => hits[slot]!);
    this.#slots.forEach((slot, i) => (hits[slot] = were[(i + 1) % were.length]!));
  }

  insert(slot: number, chain: BlockChain): Insertion {
    return this.#index.insert(slot, chain);
  }

  withdraw(insertion: Insertion): void {
    this.#index.withdraw(insertion);
  }

  size(slot: number): number {
    return this.#index.size(slot);
  }
}

function specOf(cause: InjectedCase["cause"], conversations: number, rate: number): string {
  const usual = ["red", "green", "blue"].map(
    (tenant) => `
  - name: ${tenant}
    tenant: ${tenant}
    weight: 1
    prefixes: 12
    prefixTokens: { distribution: uniform, min: 600, max: 1200 }
    userTokens: { distribution: uniform, min: 40, max: 400 }
    outputTokens: { distribution: uniform, min: 20, max: 160 }
    turns: { distribution: uniform, min: 1, max: 4 }
    thinkSeconds: 1.5`,
  );
  const hot = `
  - name: hot
    tenant: hot
    weight: ${cause === "tenant" ? HOT_WEIGHT : 1}
    prefixes: 12
    prefixTokens: { distribution: uniform, min: 600, max: 1200 }
    userTokens: ${cause === "tenant" ? "{ distribution: uniform, min: 3000, max: 7000 }" : "{ distribution: uniform, min: 40, max: 400 }"}
    outputTokens: { distribution: uniform, min: 20, max: 160 }
    turns: ${cause === "tenant" ? 1 : "{ distribution: uniform, min: 1, max: 4 }"}
    thinkSeconds: 1.5`;
  return `
conversations: ${conversations}
arrivals: { process: poisson, ratePerSecond: ${rate} }
groups:${[...usual, hot].join("")}
`;
}

function headerOf(
  setting: Setting,
  name: string,
  spec: TraceHeader["router"]["profiles"][string],
  { kvBlocks, sequencesMax, batchTokensMax }: EngineConfig,
): TraceHeader {
  return {
    version: 1,
    run: `injected${setting.seed}`,
    segment: 0,
    startWallMicros: 0,
    router: {
      seed: setting.seed,
      profiles: { [name]: spec },
      defaultProfile: name,
      blockTokens: BLOCK_TOKENS,
      staleAfterMicros: setting.staleAfterMicros,
      breaker: undefined,
    },
    hash: { algorithm: "fast", blockTokens: BLOCK_TOKENS, tokenizer: "estimate" },
    endpoints: setting.endpoints,
    engine: { kvBlocks, sequencesMax, batchTokensMax, blockTokens: BLOCK_TOKENS },
  };
}
