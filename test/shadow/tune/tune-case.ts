import { synthesize } from "#trace/import/synthetic.ts";
import { parseSyntheticSpec } from "#trace/import/synthetic-spec.ts";
import { ImportReport } from "#trace/import/import-report.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import type { Objective } from "#shadow/job/objective.ts";
import { COMMON_SCORERS } from "#shadow/tune/policy-space.ts";
import type { TuneQuestion } from "#shadow/tune/tune.ts";
import { caseSetting, namedProfile } from "../question/what-if-case.ts";

export const MEAN_E2E: Objective = { kind: "time", metric: "e2eMicros", figure: "mean" };

/** Conversations over a few long prefixes, busy enough that where they go matters. */
export function conversationsOf(conversations: number, ratePerSecond: number, seed: number): WorkloadRequest[] {
  const text = `
conversations: ${conversations}
arrivals: { process: poisson, ratePerSecond: ${ratePerSecond} }
groups:
  - name: g
    prefixes: 8
    prefixTokens: 2048
    userTokens: { distribution: uniform, min: 20, max: 400 }
    outputTokens: { distribution: uniform, min: 5, max: 60 }
    turns: { distribution: uniform, min: 1, max: 3 }
    thinkSeconds: 0.4
`;
  return [...synthesize(parseSyntheticSpec("spec", text), seed, new ImportReport("spec", "synthetic", true))];
}

/** A search in this thread of so many trials, from the profile in force and the named ones. */
export function tuneCase(
  workload: readonly WorkloadRequest[],
  inForce: string,
  bases: readonly string[],
  trialsMax: number,
): TuneQuestion {
  return {
    setting: caseSetting(workload),
    inForce: namedProfile(inForce),
    bases: bases.map(namedProfile),
    space: { scorers: COMMON_SCORERS, accepts: () => true },
    objective: MEAN_E2E,
    observed: undefined,
    share: 0.5,
    trialsMax,
    budgetMillis: Infinity,
    replicas: 3,
    gainMin: 0.01,
    memory: new KeptTrials(),
    now: () => 0,
    threadsMax: 1,
  };
}

/** Results that last as long as the test. */
export class KeptTrials {
  readonly losses = new Map<string, number>();

  get(key: string): number | undefined {
    return this.losses.get(key);
  }

  put(key: string, loss: number): void {
    this.losses.set(key, loss);
  }
}
