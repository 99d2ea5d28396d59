import type { NamedProfile } from "#config/profile-file.ts";

/** Whose policies a router has, as profiles name their source, by what its name contains. */
const FAMILIES: readonly (readonly [RegExp, string])[] = [
  [/sglang|smg|vllm-router/i, "SMG"],
  [/llm-d/i, "llm-d"],
  [/aibrix/i, "AIBrix"],
  [/dynamo/i, "NVIDIA Dynamo"],
  [/production-stack/i, "vLLM production-stack"],
];

/** Profiles as they are tried: those of the router's own project first, and noted as the likelier ones. */
export function likelyFirst<T extends Pick<NamedProfile, "source">>(
  profiles: readonly T[],
  router: string | undefined,
): (T & { readonly isLikely: boolean })[] {
  const family = FAMILIES.find(([pattern]) => router !== undefined && pattern.test(router))?.[1];
  const noted = profiles.map((one) => ({ ...one, isLikely: family !== undefined && one.source.startsWith(family) }));
  return [...noted.filter(({ isLikely }) => isLikely), ...noted.filter(({ isLikely }) => !isLikely)];
}
