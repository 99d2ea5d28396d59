import { loadProfile, type NamedProfile } from "#config/profile-file.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";

/** Policies of others, and of ours those that are not for the default. */
export const OTHERS: readonly string[] = [
  "unified",
  "lmetric",
  "b3-lmetric",
  "gnomon-weighted",
  "smg-cache-aware",
  "llm-d",
  "llm-d-active-request",
  "dynamo",
  "preble",
  "least-loaded",
  "consistent-hash",
  "sticky",
  "cognitora-fixed",
  "vllm-internal",
];

/** The default until the last choice. */
export const INCUMBENT = "gnomon-added";
/** What a regret is counted against: the best of these in each case and column. */
export const FIXED: readonly string[] = [...OTHERS, INCUMBENT];

interface Variant {
  readonly scorer: Readonly<Record<string, number>>;
  readonly guard?: Readonly<Record<string, number>>;
}

/** What may become the default; named by what differs from gnomon. */
const VARIANTS: Readonly<Record<string, Variant>> = {
  "gnomon wait 6": { scorer: { waitWeight: 6 } },
  "gnomon turn 6 within 2 s": { scorer: { turnWeight: 6, turnSeconds: 2 } },
  "gnomon batch 0.2": { scorer: { batchWeight: 0.2 } },
  "gnomon batch 0.4": { scorer: { batchWeight: 0.4 } },
  "gnomon cache 8": { scorer: { cacheWeight: 8 } },
  "gnomon full 5": { scorer: { fullWeight: 5 } },
};

export const CANDIDATES: readonly string[] = [INCUMBENT, "gnomon", ...Object.keys(VARIANTS)];

/** A candidate by its name here, or a profile by its own. */
export function policyNamed(name: string): NamedProfile {
  const variant = VARIANTS[name];
  if (variant === undefined) return loadProfile(name);
  const profile = loadProfile("gnomon");
  const spec: ProfileSpec = {
    ...profile.spec,
    filters: profile.spec.filters.map((filter) => ({
      ...filter,
      parameters: { ...filter.parameters, ...variant.guard },
    })),
    scorers: profile.spec.scorers.map((scorer) => ({
      ...scorer,
      parameters: { ...scorer.parameters, ...variant.scorer },
    })),
  };
  return { ...profile, name, spec };
}
