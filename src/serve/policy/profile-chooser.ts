import type { ProfileSpec } from "#core/plugin/spec.ts";
import { ConfigError } from "#config/config-error.ts";
import { aibrixNameOf, aibrixProfile, isComposite, parseStrategies } from "#config/peer-aibrix.ts";
import { type Refusal, refusal } from "#live/http/errors.ts";
import type { ServePlan } from "../plan/serve-plan.ts";

/** Composite strategies that clients may bring into being; beyond that only those are served. */
const COMPOSITES_MAX = 32;

/** Makes a profile known to the router, before the first request that asks for it. */
export type DefineProfile = (name: string, spec: ProfileSpec) => void;

/**
 * The profile for a request: what it asks for where that is allowed, else what its model has, else the default (""). A
 * request may ask for an allowed profile by its own name, by the name under which the configuration allows it, by the
 * name that AIBrix has for it, or for a sum of allowed ones (`least-request:2,prefix-cache:1`).
 */
export function profileChooser(
  { config, profiles }: Pick<ServePlan, "config" | "profiles">,
  define: DefineProfile,
): (model: string, asked: string) => string | Refusal {
  const { models, profilesAllowed, profileHeader } = config.routing;
  const nameOf = (key: string): string => profiles[key]?.name ?? "";
  const byModel = new Map(Object.entries(models).map(([model, key]) => [model, nameOf(key)]));
  const allowed = new Map<string, string>();
  for (const key of profilesAllowed) {
    const name = nameOf(key);
    for (const alias of [aibrixNameOf(name), name, key]) if (alias !== undefined) allowed.set(alias, name);
  }
  const composites = new Set<string>();
  const refused = (asked: string, why = ""): Refusal => {
    const message = `Expected one of ${[...allowed.keys()].join(", ")} in ${profileHeader}, got ${JSON.stringify(asked)}${why}.`;
    return refusal("bad-request", message, profileHeader);
  };
  const composite = (asked: string): string | Refusal => {
    try {
      if (!parseStrategies(asked).every((one) => allowed.has(one.name))) return refused(asked);
      const { name, spec } = aibrixProfile(asked);
      if (Object.values(profiles).some((known) => known.name === name) || composites.has(name)) return name;
      if (composites.size >= COMPOSITES_MAX) return refused(asked, "; no further combination is taken");
      composites.add(name);
      define(name, spec);
      return name;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return refused(asked, `: ${error.lines.join("; ")}`);
    }
  };
  return (model, asked) => {
    if (asked === "") return byModel.get(model) ?? "";
    return allowed.get(asked) ?? (isComposite(asked) ? composite(asked) : refused(asked));
  };
}
