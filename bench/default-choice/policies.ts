import { loadProfile, type NamedProfile } from "#config/profile-file.ts";

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

/** What may become the default: gnomon, and gnomon with other weights. */
export const CANDIDATES: readonly string[] = [
  INCUMBENT,
  "gnomon",
  "gnomon waitWeight=6",
  "gnomon turnWeight=6 turnSeconds=2",
  "gnomon batchWeight=0.2",
  "gnomon batchWeight=0.4",
  "gnomon cacheWeight=8",
  "gnomon fullWeight=5",
];

/** A profile by its name, or with other parameters of its scorers behind it: `gnomon waitWeight=6`. */
export function policyNamed(name: string): NamedProfile {
  const [own = "", ...changes] = name.split(" ");
  const profile = loadProfile(own);
  if (changes.length === 0) return profile;
  const changed = Object.fromEntries(
    changes.map((change) => {
      const [parameter = "", value = ""] = change.split("=");
      return [parameter, Number(value)] as const;
    }),
  );
  const scorers = profile.spec.scorers.map((scorer) => ({
    ...scorer,
    parameters: { ...scorer.parameters, ...changed },
  }));
  return { ...profile, name, spec: { ...profile.spec, scorers } };
}
