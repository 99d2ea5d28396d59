import { join } from "node:path";
import { CASES, type ClosedLoopCase } from "../closed-loop/case.ts";
import { liveRun, troubles } from "../closed-loop/live-run.ts";
import { prepareWorkload } from "../closed-loop/prepared-workload.ts";
import { writeWarmUp } from "../closed-loop/warm-up.ts";
import type { Sample } from "./sample.ts";
import { traceSamples } from "./trace-samples.ts";

export interface LiveOptions {
  readonly traces: string;
  readonly requests: number;
  readonly timeScale: number;
  readonly seed: number;
  /** Folder for the trace. */
  readonly folder: string;
}

/** The cases that are asked for by names such as "mooncake-moderate". */
export function liveCasesNamed(names: readonly string[]): readonly ClosedLoopCase[] {
  return CASES.filter(({ workload, load }) => names.includes(`${workload}-${load}`));
}

export interface LiveSamples {
  readonly samples: readonly Sample[];
  /** Why the machine did not keep up, if it did not. */
  readonly troubles: readonly string[];
}

/** Every decision of a gateway under gnomon-predicted before emulated engines, over sockets. */
export async function liveSamples(one: ClosedLoopCase, options: LiveOptions): Promise<LiveSamples> {
  const { traces, timeScale, seed, folder } = options;
  const [workload, warmUp] = [join(folder, "workload.jsonl"), join(folder, "warm-up.jsonl")];
  const wanted = { ...one, requests: options.requests };
  await prepareWorkload(wanted, join(traces, one.path), workload, seed);
  writeWarmUp(warmUp, timeScale);
  const run = await liveRun({
    one: wanted,
    profile: "gnomon-predicted",
    workload,
    warmUp,
    folder,
    port: 19_700,
    timeScale,
    seed,
  });
  return { samples: await traceSamples(run.trace), troubles: troubles(run.machine) };
}
