import { shown } from "#core/plugin/parameter.ts";
import { withAibrixParameters } from "./aibrix-environment.ts";
import { ConfigError } from "./config-error.ts";
import { type NamedProfile, inlineProfile, isPath } from "./native-profile.ts";
import { pathText } from "./problem.ts";
import { loadProfile } from "./profile-file.ts";
import type { Config } from "./schema.ts";
import type { Path } from "./schema-node.ts";

/** The profiles that a configuration asks for. */
export interface ResolvedProfiles {
  /** For requests that select none. */
  readonly profile: NamedProfile;
  /** Every profile that the router is to know, by the name under which the configuration has it. */
  readonly profiles: Readonly<Record<string, NamedProfile>>;
}

export interface ProfileOrigin {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The default profile in place of routing.profile, as flags make one. */
  readonly chosen?: NamedProfile | undefined;
  /** Whether names may be paths of files; those of a policy that comes over a network may not. */
  readonly readsFiles: boolean;
}

type ProfileKeys = Pick<Config, "routing" | "profiles">;

/** Reads and checks every profile of a configuration; throws ConfigError with all that is wrong, each with its path. */
export function resolveProfiles(
  config: ProfileKeys,
  { environment, chosen, readsFiles }: ProfileOrigin,
): ResolvedProfiles {
  const lines: string[] = [];
  const profiles: Record<string, NamedProfile> = {};
  for (const [key, path] of askedKeys(config, chosen === undefined)) {
    if (Object.hasOwn(profiles, key)) continue;
    try {
      profiles[key] = withAibrixParameters(read(key, path, config, readsFiles), environment);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      lines.push(...error.lines);
    }
  }
  const profile = chosen === undefined ? profiles[config.routing.profile] : withAibrixParameters(chosen, environment);
  if (profile === undefined || lines.length > 0) throw new ConfigError([...new Set(lines)]);
  const all = { ...profiles, [profile.name]: profile };
  refuseNamesakes(Object.values(all));
  return { profile, profiles: all };
}

/** Keys of profiles with the place where each is asked for. */
function askedKeys({ routing, profiles }: ProfileKeys, withDefault: boolean): (readonly [key: string, path: Path])[] {
  const { profile, models, profilesAllowed } = routing;
  return [
    ...Object.keys(profiles).map((key) => [key, ["profiles", key]] as const),
    ...(withDefault ? [[profile, ["routing", "profile"]] as const] : []),
    ...Object.entries(models).map(([model, key]) => [key, ["routing", "models", model]] as const),
    ...profilesAllowed.map((key, i) => [key, ["routing", "profilesAllowed", i]] as const),
  ];
}

function read(key: string, path: Path, { profiles }: ProfileKeys, readsFiles: boolean): NamedProfile {
  const inline = Object.hasOwn(profiles, key) ? profiles[key] : undefined;
  if (inline !== undefined) return inlineProfile(key, inline, readsFiles);
  if (isPath(key) && !readsFiles) {
    const accepted = "a shipped profile or one of `profiles`, by its name";
    throw new ConfigError([`${pathText(path)}: expected ${accepted}, got the path ${shown(key)}`]);
  }
  try {
    return loadProfile(key);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError(error.lines.map((line) => line.replace(/^(?:profile|strategy): /, `${pathText(path)}: `)));
  }
}

/** Requests select by name, so one name must not stand for two profiles. */
function refuseNamesakes(profiles: readonly NamedProfile[]): void {
  const specs = new Map<string, string>();
  for (const { name, spec } of profiles) {
    const text = JSON.stringify(spec);
    if ((specs.get(name) ?? text) !== text)
      throw new ConfigError([`routing: expected one profile of a name, got two that are named ${name}`]);
    specs.set(name, text);
  }
}
