import { nameHash, type Random, randomFor } from "#core/base/random.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import type { Stalls, StepDrift } from "#engine/step-drift.ts";
import type { Evidence, Served } from "#shadow/calibrate/evidence.ts";
import { forcedReplay } from "#shadow/calibrate/forced-replay.ts";
import { engineWith } from "#shadow/calibrate/parameters.ts";
import type { RecordedRun } from "#shadow/recorded/recorded-run.ts";
import type { Observed } from "#shadow/recorded/observed.ts";
import type { TraceHeader } from "#trace/codec/record.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";
import { loadProfile } from "#config/profile-file.ts";

/** How the machine of a drawn run behaves, beyond what an engine file can hold. */
export interface Machine {
  /** Standard deviation of the logarithm of step times from one run to the next. */
  readonly betweenRuns: number;
  /** The same within a run, and for how long a slow time lasts. */
  readonly withinRun: number;
  readonly swingMicros: number;
  /** Times a second at which the machine stands still, and their mean length. */
  readonly stallsPerSecond: number;
  readonly stallMicros: number;
}

export interface DrawnTraffic {
  readonly requests: number;
  readonly gapMicros: number;
}

/** Factors of the truth hold for so long, a tenth of what calibrations see. */
const GRAIN_MICROS = 100_000;
const SPAN_GRAINS = 4096;
const GROUPS = 10;
const BLOCK_TOKENS = 32;

const TRUTH = {
  delayMicros: 6000,
  baseMicros: 9500,
  perPrefillTokenMicros: 30,
  perDecodeMicros: 600,
  perPrefillMicros: 1500,
  perDecodeContextTokenMicros: 0,
  perPrefillPairMicros: 0,
} as const;

const SIZES: EngineConfig = engineDefaults({
  blockTokens: BLOCK_TOKENS,
  kvBlocks: 2048,
  sequencesMax: 16,
  batchTokensMax: 2048,
  modelTokensMax: 8192,
});

/** The engine of every drawn run, on a machine of usual speed. */
export const TRUE_ENGINE: EngineConfig = engineWith(SIZES, TRUTH);

/**
 * A run of one engine on a machine that is faster or slower than in other runs, swings within the run and stands still at
 * times, as its client would have seen it. Same seed, same run.
 */
export function drawnRun(machine: Machine, traffic: DrawnTraffic, seed: number): RecordedRun {
  const random = randomFor(seed, nameHash("drawn run"));
  const evidence = asked(traffic, randomFor(seed, nameHash("drawn traffic")));
  const delay = Math.exp(machine.betweenRuns * normal(random));
  const truth = engineWith(SIZES, { ...TRUTH, delayMicros: TRUTH.delayMicros * delay });
  const seen = forcedReplay(evidence, { ...truth, stepDrift: driftOf(machine, random) });
  const rows = evidence.rows;
  const workload = rows.map(({ arrivalAt, promptTokens, outputTokens, hashes }, index): WorkloadRequest => {
    const blockIds = Float64Array.from(
      { length: hashes.length / 2 },
      (_, i) => hashes[2 * i]! * 4096 + hashes[2 * i + 1]!,
    );
    const session = `request_${index}`;
    return {
      ...LENGTHS_ONLY,
      index,
      session,
      arrivalMicros: arrivalAt,
      promptTokens,
      outputTokens,
      blockIds,
      blockTokens: BLOCK_TOKENS,
    };
  });
  // What a client meets beyond the engine: a request in 50 waits in a socket.
  const observed = rows.map(({ outputTokens }, i): Observed => {
    const late = random.below(50) === 0 ? -20_000 * Math.log(1 - random.next()) : 1500 * random.next();
    return {
      endpoint: "one",
      ok: true,
      ttftMicros: Math.round(seen.ttftMicros[i]! + late),
      e2eMicros: Math.round(seen.e2eMicros[i]! + late),
      outputTokens,
      cachedTokens: seen.cachedTokens[i]!,
      attempts: 1,
      retriedMicros: 0,
    };
  });
  const endpoint = {
    id: "one",
    models: [],
    labels: {},
    kvCapacityTokens: (SIZES.kvBlocks - 1) * BLOCK_TOKENS,
    concurrencyMax: SIZES.sequencesMax,
  };
  return { header: headerOf(seed, endpoint), workload, observed, endpoints: [endpoint], fleetEvents: [], left: {} };
}

/** How fast a machine is over time in one run. */
export function driftOf(machine: Machine, random: Random): StepDrift {
  const level = Math.exp(machine.betweenRuns * normal(random));
  const factors = factorsOf(machine, level, random);
  return { windowMicros: GRAIN_MICROS, factors, stalls: stallsOf(machine, random) };
}

function headerOf(seed: number, endpoint: TraceHeader["endpoints"][number]): TraceHeader {
  const { name, spec } = loadProfile("gnomon");
  return {
    version: 1,
    run: `drawn-${seed}`,
    segment: 0,
    startWallMicros: 0,
    router: {
      seed: 0,
      profiles: { [name]: spec },
      defaultProfile: name,
      blockTokens: BLOCK_TOKENS,
      staleAfterMicros: 5_000_000,
      breaker: undefined,
    },
    hash: { algorithm: "fast", blockTokens: BLOCK_TOKENS, tokenizer: "drawn" },
    endpoints: [endpoint],
    engine: {
      blockTokens: BLOCK_TOKENS,
      kvBlocks: SIZES.kvBlocks,
      sequencesMax: SIZES.sequencesMax,
      batchTokensMax: SIZES.batchTokensMax,
      modelTokensMax: SIZES.modelTokensMax,
    },
  };
}

/** Step times' factors by time: a first-order autoregression in logarithms. */
function factorsOf(machine: Machine, level: number, random: Random): Float64Array {
  const keep = Math.exp(-GRAIN_MICROS / machine.swingMicros);
  const factors = new Float64Array(SPAN_GRAINS);
  let swing = machine.withinRun * normal(random);
  for (let g = 0; g < SPAN_GRAINS; g++) {
    swing = keep * swing + Math.sqrt(1 - keep * keep) * machine.withinRun * normal(random);
    factors[g] = level * Math.exp(swing);
  }
  return factors;
}

function stallsOf({ stallsPerSecond, stallMicros }: Machine, random: Random): Stalls {
  const [at, micros]: [number[], number[]] = [[], []];
  const pause = () => (-MICROS_PER_SECOND / stallsPerSecond) * Math.log(1 - random.next());
  for (let next = pause(); next < GRAIN_MICROS * SPAN_GRAINS; next += pause()) {
    at.push(Math.floor(next));
    micros.push(Math.round(-stallMicros * Math.log(1 - random.next())));
    next += micros.at(-1)!;
  }
  return { at: Float64Array.from(at), micros: Float64Array.from(micros) };
}

function asked({ requests, gapMicros }: DrawnTraffic, random: Random): Evidence {
  const unknown = { cachedTokens: NaN, ttftMicros: NaN, e2eMicros: NaN };
  let at = 50_000;
  const rows = Array.from({ length: requests }, (_, i): Served => {
    at += 1 + Math.round(-gapMicros * Math.log(1 - random.next()));
    const group = random.below(GROUPS);
    const prefix = BLOCK_TOKENS * (6 + 2 * group);
    const promptTokens = prefix + Math.round(Math.min(2500, 280 * Math.exp(0.7 * normal(random))));
    const outputTokens = Math.max(6, Math.round(70 + 25 * normal(random)));
    const hashes = new Int32Array(2 * Math.floor(promptTokens / BLOCK_TOKENS));
    for (let block = 0; 2 * block < hashes.length; block++) {
      hashes[2 * block] = (block + 1) * BLOCK_TOKENS <= prefix ? group : GROUPS + i;
      hashes[2 * block + 1] = block;
    }
    return { ...unknown, arrivalAt: at, endpoint: 0, promptTokens, outputTokens, ok: true, hashes };
  });
  return { endpoints: ["one"], rows, left: {} };
}

function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random.next())) * Math.cos(2 * Math.PI * random.next());
}
