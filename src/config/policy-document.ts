import type { ProfileSpec } from "#core/plugin/spec.ts";
import { ConfigError } from "./config-error.ts";
import { FIXED_LIMITS, isLive, type LiveSetting } from "./live-settings.ts";
import type { NamedProfile } from "./native-profile.ts";
import { expectedPlain, mergePatch } from "./merge-patch.ts";
import { type Problem, checkShape, problemLine } from "./problem.ts";
import type { ResolvedProfiles } from "./resolve-profiles.ts";
import { CONFIG_SCHEMA, type Config } from "./schema.ts";
import { type Path, nodeAt, schemaNode } from "./schema-node.ts";
import { withWholeRollouts } from "./whole-rollout.ts";

/** A policy as plain data, whole and complete: nothing in it names a file. Also a part of a configuration file. */
export interface PolicyDocument {
  readonly routing: Pick<Config["routing"], LiveRouting>;
  readonly profiles: Readonly<Record<string, ProfileSpec & Pick<NamedProfile, "signals">>>;
  readonly admission: Config["admission"];
  readonly limits: Partial<Config["limits"]>;
}

type RoutingKey<Setting> = Setting extends `routing.${infer Key}` ? Key : never;
type LiveRouting = RoutingKey<LiveSetting> & keyof Config["routing"];

/** The policy of a configuration and its profiles. */
export function policyDocument(
  { routing, limits, admission }: Config,
  { profile, profiles }: ResolvedProfiles,
): PolicyDocument {
  const nameOf = (key: string): string => profiles[key]?.name ?? key;
  const { models, profilesAllowed, profileHeader } = routing;
  return {
    routing: {
      profile: profile.name,
      models: Object.fromEntries(Object.entries(models).map(([model, key]) => [model, nameOf(key)])),
      profilesAllowed: profilesAllowed.map(nameOf),
      profileHeader,
    },
    profiles: Object.fromEntries(
      Object.values(profiles).map(({ name, spec, signals }) => [name, { ...spec, ...(signals && { signals }) }]),
    ),
    admission,
    limits: Object.fromEntries(Object.entries(limits).filter(([key]) => !FIXED_LIMITS.has(key))),
  };
}

/** How a document from outside meets the policy that is there. */
export type PolicyMerge =
  /**
   * Keys of routing and limits that it leaves out stay as they are in the base; its profiles, models and admission are
   * all.
   */
  | "replace"
  /** A merge patch (RFC 7396): what it leaves out stays, null takes away. */
  | "merge";

/** The whole configuration that a document asks for, on top of the one that runs. Throws ConfigError. */
export function configOver(running: Config, base: PolicyDocument, document: unknown, how: PolicyMerge): Config {
  const given = expectedPlain(document);
  const policy = how === "merge" ? mergePatch(withoutExtended(base, given), given) : replaced(base, given);
  const { routing, profiles, admission, limits, ...fixed } = policy as Record<string, unknown>;
  const asked = {
    ...(mergePatch(running, fixed) as object),
    routing: isMapping(routing) ? { ...running.routing, ...routing } : routing,
    profiles,
    admission,
    limits: isMapping(limits) ? { ...running.limits, ...limits } : limits,
  };
  const checked = checkShape(CONFIG_SCHEMA, withWholeRollouts(asked));
  if (!checked.ok) throw new ConfigError(checked.problems.map((problem) => problemLine(problem)));
  return checked.value;
}

/** A profile that extends another one states itself whole: nothing of one of its name is mixed into it. */
function withoutExtended(base: PolicyDocument, { profiles }: Readonly<Record<string, unknown>>): PolicyDocument {
  if (!isMapping(profiles)) return base;
  const kept = Object.entries(base.profiles).filter(([name]) => {
    const given = profiles[name];
    return !(isMapping(given) && "extends" in given);
  });
  return { ...base, profiles: Object.fromEntries(kept) };
}

function replaced(base: PolicyDocument, given: Readonly<Record<string, unknown>>): unknown {
  const over = (of: object, section: unknown) => (isMapping(section) ? { ...of, ...section } : (section ?? of));
  return {
    ...given,
    routing: over(base.routing, given["routing"]),
    profiles: given["profiles"] ?? base.profiles,
    admission: given["admission"] ?? base.admission,
    limits: over(base.limits, given["limits"]),
  };
}

/** Keys in which two configurations differ that cannot change while a gateway runs; each is named. */
export function fixedDifferences(running: Config, asked: Config): Problem[] {
  const root = schemaNode(CONFIG_SCHEMA);
  const problems: Problem[] = [];
  const walk = (a: unknown, b: unknown, path: Path): void => {
    if (isLive(path)) return;
    if (isMapping(a) && isMapping(b)) {
      for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) walk(a[key], b[key], [...path, key]);
      return;
    }
    if (JSON.stringify(a) === JSON.stringify(b)) return;
    const secret = nodeAt(root, path)?.secret === true;
    const values = secret ? "" : `: it runs with ${shown(a)}, asked for is ${shown(b)}`;
    problems.push({ path, message: `cannot change while the gateway runs, only at its start${values}` });
  };
  walk(running, asked, []);
  return problems.slice(0, PROBLEMS_MAX);
}

const PROBLEMS_MAX = 32;
const SHOWN_CHARS_MAX = 60;

function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = JSON.stringify(value);
  return text.length > SHOWN_CHARS_MAX ? `${text.slice(0, SHOWN_CHARS_MAX)}…` : text;
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
