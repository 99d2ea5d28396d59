import { randomFor } from "#core/base/random.ts";
import type { EngineConfig } from "#engine/config.ts";
import { evidenceOf } from "#shadow/calibrate/evidence.ts";
import { forcedReplay } from "#shadow/calibrate/forced-replay.ts";
import type { RecordedRun } from "#shadow/recorded/recorded-run.ts";
import { LENGTHS_ONLY } from "#trace/workload-request.ts";
import { HEADER } from "../../trace/trace-samples.ts";

export interface Traffic {
  readonly requests?: number;
  readonly seed: number;
  readonly gapMicros?: number;
  readonly promptTokens?: (uniform: () => number) => number;
}

/** What two engines would have shown of such traffic, as a recorder tells it. */
export function runOn(truth: EngineConfig, traffic: Traffic): RecordedRun {
  const random = randomFor(traffic.seed, 1);
  const uniform = () => random.below(1 << 20) / (1 << 20);
  const promptTokens = traffic.promptTokens ?? (() => 32 + Math.floor(1500 * uniform() ** 2));
  let at = 0;
  const workload = Array.from({ length: traffic.requests ?? 400 }, (_, index) => {
    at += 1 + Math.floor(2 * (traffic.gapMicros ?? 90_000) * uniform());
    return {
      ...LENGTHS_ONLY,
      index,
      session: `s${index}`,
      arrivalMicros: at,
      promptTokens: promptTokens(uniform),
      outputTokens: 4 + Math.floor(120 * uniform()),
    };
  });
  const blank: RecordedRun = {
    header: HEADER,
    workload,
    observed: workload.map(({ index, outputTokens }) => ({
      endpoint: index % 2 === 0 ? "a" : "b",
      ok: true,
      ttftMicros: NaN,
      e2eMicros: NaN,
      outputTokens,
      cachedTokens: 0,
      attempts: 1,
      retriedMicros: 0,
    })),
    endpoints: ["a", "b"].map((id) => ({
      id,
      models: [],
      labels: {},
      kvCapacityTokens: (truth.kvBlocks - 1) * truth.blockTokens,
      concurrencyMax: truth.sequencesMax,
    })),
    fleetEvents: [],
    left: {},
  };
  const seen = forcedReplay(evidenceOf(blank, truth.blockTokens), truth);
  const observed = blank.observed.map((one, i) => ({
    ...one,
    ttftMicros: seen.ttftMicros[i]!,
    e2eMicros: seen.e2eMicros[i]!,
    cachedTokens: seen.cachedTokens[i]!,
  }));
  return { ...blank, observed };
}
