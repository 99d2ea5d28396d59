import type { EngineConfig } from "#engine/config.ts";
import { replaySteady, type SteadyLoad } from "#shadow/calibrate/steady-replay.ts";
import { type PublishedRun, tracedArrivals } from "./runs.ts";

export interface Predicted {
  readonly ttftMillis: number;
  readonly tpotMillis: number;
}

const REQUESTS = 240;
/** Not counted: the engine fills up meanwhile. */
const WARM_UP = 80;

/** Means of the run's load on an engine. */
export function replayed(run: PublishedRun, config: EngineConfig): Predicted {
  const { load } = run;
  const traced =
    load.kind === "trace" ? tracedArrivals(load.name).filter((_arrival, i) => i % load.every === 0) : undefined;
  const times = replaySteady(
    config,
    traced === undefined ? loadOf(run) : { kind: "at", arrivals: traced.map(({ atMicros }) => atMicros) },
    (number) => ({
      promptTokens: traced?.[number]?.promptTokens ?? run.promptTokens,
      outputTokens: traced?.[number]?.outputTokens ?? run.outputTokens,
      text: run.prompts > 0 ? number % run.prompts : number,
    }),
    load.kind === "rate" ? WARM_UP : 0,
  );
  return { ttftMillis: times.ttftMicros / 1e3, tpotMillis: times.tpotMicros / 1e3 };
}

function loadOf({ load }: PublishedRun): SteadyLoad {
  if (load.kind === "users") return { kind: "users", count: load.count, requests: Math.max(4, 3 * load.count) };
  const perSecond = load.kind === "rate" ? load.perSecond : 1;
  return { kind: "at", arrivals: Array.from({ length: REQUESTS }, (_, i) => Math.round((i * 1e6) / perSecond)) };
}
