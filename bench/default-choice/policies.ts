import { loadProfile, type NamedProfile } from "#config/profile-file.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";

/** Policies of others, and of ours those that are not for the default: what a default is held against. */
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
export const INCUMBENT = "gnomon before";

interface Variant {
  readonly base: "gnomon" | "gnomon-predicted";
  readonly scorer: Readonly<Record<string, number>>;
  readonly guard?: Readonly<Record<string, number>>;
}

/** Of the default until the last choice: by then all endpoints counted as alike. */
const added = (scorer: Variant["scorer"], guard?: Variant["guard"]): Variant => ({
  base: "gnomon",
  scorer: { batchWeight: 0.2, speedWeight: 0, ...scorer },
  ...(guard && { guard }),
});
/** As it was when the choice was made: by then its batchWeight was the scorer's own. */
const predicted = (scorer: Variant["scorer"], guard?: Variant["guard"]): Variant => ({
  base: "gnomon-predicted",
  scorer: { batchWeight: 0.2, ...scorer },
  ...(guard && { guard }),
});

/** What may become the default; named by what differs from the profile that it is made of. */
const VARIANTS: Readonly<Record<string, Variant>> = {
  [INCUMBENT]: added({}),
  "gnomon cache 2": added({ cacheWeight: 2 }),
  "gnomon batch 0.4": added({ batchWeight: 0.4 }),
  "gnomon, own speeds": added({ speedWeight: 1 }),
  "gnomon, own speeds, batch 0.4": added({ speedWeight: 1, batchWeight: 0.4 }),
  "gnomon guard 1.5 + 4": added({}, { factor: 1.5, slack: 4 }),
  predicted: predicted({}),
  "predicted wait 2": predicted({ waitWeight: 2 }),
  "predicted wait 1": predicted({ waitWeight: 1 }),
  "predicted cache 2": predicted({ cacheWeight: 2 }),
  "predicted cache 2, wait 2": predicted({ cacheWeight: 2, waitWeight: 2 }),
  "predicted cache 1, wait 2": predicted({ cacheWeight: 1, waitWeight: 2 }),
  "predicted batch 0.5": predicted({ batchWeight: 0.5 }),
  "predicted batch 1": predicted({ batchWeight: 1 }),
  "predicted wait 2, batch 0.5": predicted({ waitWeight: 2, batchWeight: 0.5 }),
  "predicted cache 2, wait 2, batch 0.5": predicted({ cacheWeight: 2, waitWeight: 2, batchWeight: 0.5 }),
  "predicted wait 8, batch 0.5": predicted({ waitWeight: 8, batchWeight: 0.5 }),
  "predicted wait 8, batch 0.3": predicted({ waitWeight: 8, batchWeight: 0.3 }),
  "predicted wait 8, batch 0.5, guard 3 + 16": predicted({ waitWeight: 8, batchWeight: 0.5 }, { factor: 3, slack: 16 }),
  "predicted guard 1.5 + 4": predicted({}, { factor: 1.5, slack: 4 }),
  "predicted guard 3 + 16": predicted({}, { factor: 3, slack: 16 }),
};

export const CANDIDATES: readonly string[] = Object.keys(VARIANTS);

/** A candidate by its name here, or a profile by its own. */
export function policyNamed(name: string): NamedProfile {
  const variant = VARIANTS[name];
  if (variant === undefined) return loadProfile(name);
  const profile = loadProfile(variant.base);
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
