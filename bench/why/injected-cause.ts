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
import type { WorkloadRequest } from "#trace/workload-request.ts";

export const INJECTED = ["index", "cache", "tenant", "engines", "prefill", "policy"] as const;
export type Injected = (typeof INJECTED)[number];

export interface InjectedCase {
  readonly cause: Injected | "none" | "load";
  readonly seed: number;
  readonly conversations: number;
  /** The first where it is left out. */
  readonly workload?: WorkloadName;
  /** Routes where nothing is wrong with its weights; llm-d where it is left out. */
  readonly inForce?: string;
}

export interface InjectedTraffic {
  readonly requests: readonly WorkloadRequest[];
  /** Room of an engine's cache as it should be, and where it is too small. */
  readonly kvBlocks: number;
  readonly smallKvBlocks: number;
}

/** Traffic of four tenants, and the sizes of caches for it. */
interface InjectedWorkload {
  readonly arrivals: string;
  readonly kvBlocks: number;
  readonly smallKvBlocks: number;
  readonly usual: string;
  /** Of the hot tenant, with its part of the conversations. */
  readonly hot: string;
}

const WORKLOADS = {
  /** Short questions behind a dozen system prompts for each tenant. */
  chat: {
    arrivals: "{ process: poisson, ratePerSecond: RATE25 }",
    kvBlocks: 8_000,
    smallKvBlocks: 1_400,
    usual: `
    weight: 1
    prefixes: 12
    prefixTokens: { distribution: uniform, min: 600, max: 1200 }
    userTokens: { distribution: uniform, min: 40, max: 400 }
    outputTokens: { distribution: uniform, min: 20, max: 160 }
    turns: { distribution: uniform, min: 1, max: 4 }
    thinkSeconds: 1.5`,
    hot: `
    weight: 1.2
    prefixes: 12
    prefixTokens: { distribution: uniform, min: 600, max: 1200 }
    userTokens: { distribution: uniform, min: 3000, max: 7000 }
    outputTokens: { distribution: uniform, min: 20, max: 160 }
    turns: 1`,
  },
  /** Long conversations that grow by tool answers, in bursts. */
  agents: {
    arrivals: "{ process: gamma, ratePerSecond: RATE4, cv: 2 }",
    kvBlocks: 20_000,
    smallKvBlocks: 2_500,
    usual: `
    weight: 1
    prefixes: 3
    prefixTokens: { distribution: uniform, min: 1500, max: 3000 }
    userTokens: { distribution: uniform, min: 100, max: 1200 }
    outputTokens: { distribution: uniform, min: 30, max: 250 }
    turns: { distribution: uniform, min: 3, max: 10 }
    thinkSeconds: 1`,
    hot: `
    weight: 6
    userTokens: { distribution: uniform, min: 8000, max: 14000 }
    outputTokens: { distribution: uniform, min: 30, max: 250 }
    turns: 1`,
  },
} as const satisfies Record<string, InjectedWorkload>;
export type WorkloadName = keyof typeof WORKLOADS;

/** What is assumed of the engines, but for their sizes, which the trace states. */
export const ENGINE: EngineConfig = engineDefaults({ modelTokensMax: 40_000 });
const SLOW_FACTOR = 2;
const SLOW_PREFILL_FACTOR = 3;
/** Conversations of the control in which there are simply too many of them. */
const LOAD_FACTOR = 2;
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
 * A recorded trace of four engines in which one thing is wrong; steps wander by a tenth, and nobody states it:
 * - index: the gateway takes each engine's cache for its neighbour's
 * - cache: the engines have room for a fifth of the blocks or less
 * - tenant: one tenant among four sends prompts of thousands of tokens
 * - engines: one engine's steps take twice as long
 * - prefill: one engine's prompt tokens take three times as long
 * - policy: prefixes weigh a hundredth of what they should, under llm-d's scorers
 * - none: nothing; load: nothing but twice as many conversations a second
 */
export function injectedTrace(asked: InjectedCase, traffic = injectedTraffic(asked)): TraceItem[] {
  const { cause, seed, inForce = "llm-d" } = asked;
  const kvBlocks = cause === "cache" ? traffic.smallKvBlocks : traffic.kvBlocks;
  const engine = { ...ENGINE, kvBlocks };
  const endpoints = ["e0", "e1", "e2", "e3"].map((id): Endpoint => {
    const kvCapacityTokens = (kvBlocks - 1) * BLOCK_TOKENS;
    return { id, models: [], labels: {}, kvCapacityTokens, concurrencyMax: engine.sequencesMax };
  });
  const name = cause === "policy" ? "llm-d" : inForce;
  const good = loadProfile(name).spec;
  const spec = cause === "policy" ? { ...good, scorers: good.scorers.map(withBadWeight) } : good;
  const setting: Setting = {
    seed,
    workload: traffic.requests,
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
        ...(cause === "prefill" && place === 0 ? slowPrefill(one.config) : one.config),
        stepDrift: wandering(seed, place, cause === "engines" && place === 0 ? SLOW_FACTOR : 1),
      },
    })),
    ...(cause === "index" && { prefixes: { kind: "index", create: () => new NeighbourIndex() } as const }),
    observe: (input, decision) => void items.push({ kind: "record", input, decision: decision && recorded(decision) }),
  });
  simulation.run();
  return items;
}

/** Prompt tokens take longer, and nothing else. */
export function slowPrefill(engine: EngineConfig): EngineConfig {
  const { stepTime } = engine;
  if (stepTime.kind !== "coefficients") throw new TypeError(`expected coefficients, got ${stepTime.kind}`);
  const perPrefillTokenMicros = SLOW_PREFILL_FACTOR * stepTime.perPrefillTokenMicros;
  return { ...engine, stepTime: { ...stepTime, perPrefillTokenMicros } };
}

/** The part of an answer that stands for a cause. */
export function partOf(cause: string): string {
  return cause === "prefill" ? "engines" : cause;
}

/** Our own generator's traffic of a case. */
export function injectedTraffic(asked: InjectedCase): InjectedTraffic {
  const { kvBlocks, smallKvBlocks } = WORKLOADS[asked.workload ?? "chat"];
  const spec = parseSyntheticSpec("why", specOf(asked));
  const requests = [...synthesize(spec, asked.seed, new ImportReport("why", "synthetic", true))];
  return { requests, kvBlocks, smallKvBlocks };
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

function specOf({ cause, conversations, workload = "chat" }: InjectedCase): string {
  const { arrivals, usual, hot } = WORKLOADS[workload];
  const factor = cause === "load" ? LOAD_FACTOR : 1;
  const tenants = ["red", "green", "blue", "hot"].map((tenant) => {
    const group = tenant === "hot" && cause === "tenant" ? hot : usual;
    return `\n  - name: ${tenant}\n    tenant: ${tenant}${group}`;
  });
  return `
conversations: ${conversations}
arrivals: ${arrivals.replace(/RATE(\d+)/, (_, rate: string) => String(factor * Number(rate)))}
groups:${tenants.join("")}
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
