import { loadProfile } from "#config/profile-file.ts";
import { engineDefaults } from "#engine/config.ts";
import type { Candidate, Setting } from "#shadow/candidate/candidate.ts";
import { ImportReport } from "#trace/import/import-report.ts";
import { synthesize } from "#trace/import/synthetic.ts";
import { parseSyntheticSpec } from "#trace/import/synthetic-spec.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";

const SPEC = `
arrivals: { process: poisson, ratePerSecond: 12 }
groups:
  - name: g
    prefixes: 6
    prefixTokens: 512
    userTokens: { distribution: uniform, min: 20, max: 200 }
    outputTokens: { distribution: uniform, min: 5, max: 60 }
    turns: { distribution: uniform, min: 1, max: 3 }
    thinkSeconds: 0.4
`;
export const CASE_ENGINE = engineDefaults({ kvBlocks: 2000 });
export const CASE_SIGNALS = {
  mode: "scrape",
  intervalMicros: 500_000,
  phase: "spread",
  delayMicros: 0,
  lossShare: 0,
} as const;

export function namedProfile(name: string): Candidate {
  return { name, spec: loadProfile(name).spec };
}

/** Two requests a conversation, some 180, over six shared prefixes. Where caches are to be full, it takes more of them. */
export function caseWorkload(conversations = 90): WorkloadRequest[] {
  const spec = `conversations: ${conversations}${SPEC}`;
  return [...synthesize(parseSyntheticSpec("spec", spec), 3, new ImportReport("spec", "synthetic", true))];
}

export function caseEndpoints(...ids: readonly string[]): Setting["endpoints"] {
  return ids.map((id) => ({ id, models: [], labels: {}, kvCapacityTokens: undefined, concurrencyMax: undefined }));
}

export function caseSetting(workload: readonly WorkloadRequest[]): Setting {
  return {
    seed: 9,
    workload,
    endpoints: caseEndpoints("a", "b", "c"),
    fleetEvents: [],
    engine: CASE_ENGINE,
    signals: CASE_SIGNALS,
    blockTokens: 16,
    staleAfterMicros: 2_000_000,
    requestMicros: 0,
    answerMicros: 0,
    rateScale: 1,
  };
}
