import { ADMIN_TOKEN_VARIABLE } from "./admin-section.ts";
import { ConfigError } from "./config-error.ts";
import { applyOverrides, overridesFromEnvironment, type Override } from "./override.ts";
import { portClashes } from "./port-clashes.ts";
import { checkShape, problemLine, type Problem } from "./problem.ts";
import { CONFIG_SCHEMA, type Config } from "./schema.ts";
import { schemaNode, type Path, type SchemaNode } from "./schema-node.ts";
import { readYamlFile, type YamlFile } from "./yaml-file.ts";
import { withWholeRollouts } from "./whole-rollout.ts";

export interface ConfigSources {
  /** Path of a YAML file; undefined for defaults alone. */
  readonly file: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** From flags; they win over the environment, which wins over the file, which wins over the defaults. */
  readonly overrides: readonly Override[];
  /** Variables that hold secrets need not be set, as where a configuration is checked before it is deployed. */
  readonly withoutSecrets?: boolean;
}

/** Reads the configuration from all its sources; throws ConfigError with every problem at once. */
export function loadConfig(sources: ConfigSources): Config {
  const file = sources.file === undefined ? undefined : readYamlFile(sources.file);
  if (file?.ok === false) throw new ConfigError(file.problems.map((problem) => problemLine(problem)));
  const root = schemaNode(CONFIG_SCHEMA);
  const written: unknown = file?.value.value ?? {};
  const { environment } = sources;
  const named = overridesFromEnvironment(environment, root, () => false).overrides;
  const secrets = secretNames(applyOverrides(written, [...named, ...sources.overrides]), root);
  const isSecret = (name: string) => secrets.has(name) || name === ADMIN_TOKEN_VARIABLE;
  const fromEnvironment = overridesFromEnvironment(environment, root, isSecret);
  const given = [...fromEnvironment.overrides, ...sources.overrides];
  const overrides = [...adminTokenOverride(applyOverrides(written, given), environment), ...given];
  const asked = withWholeRollouts(applyOverrides(written, overrides));
  const checked = checkShape(CONFIG_SCHEMA, asked);
  const problems = fromEnvironment.problems.map((problem) => problemLine(problem));
  if (!checked.ok) problems.push(...checked.problems.map((problem) => withOrigin(problem, overrides, file?.value)));
  if (checked.ok && sources.withoutSecrets !== true)
    problems.push(
      ...unsetSecrets(asked, root, sources.environment).map((problem) => withOrigin(problem, overrides, file?.value)),
    );
  if (checked.ok)
    problems.push(...portClashes(checked.value).map((problem) => withOrigin(problem, overrides, file?.value)));
  if (!checked.ok || problems.length > 0) throw new ConfigError(problems);
  return checked.value;
}

/** The variable that the commands send the admin token from is the gateway's too, where no other source is named. */
function adminTokenOverride(given: unknown, environment: ConfigSources["environment"]): Override[] {
  if (environment[ADMIN_TOKEN_VARIABLE] === undefined) return [];
  const { admin } = given as { readonly admin?: unknown };
  if (typeof admin === "object" && admin !== null && ("tokenEnv" in admin || "tokenFile" in admin)) return [];
  return [{ path: ["admin", "tokenEnv"], value: ADMIN_TOKEN_VARIABLE, from: ADMIN_TOKEN_VARIABLE }];
}

function withOrigin(problem: Problem, overrides: readonly Override[], file: YamlFile | undefined): string {
  const override = overrides.findLast((one) => one.path.every((key, i) => problem.path[i] === key));
  if (override !== undefined) return problemLine(problem, override.from);
  return problemLine(problem, file === undefined ? "" : `${file.name} line ${file.lineOf(problem.path)}`);
}

/** Names of the variables that the configuration takes secrets from. */
function secretNames(value: unknown, root: SchemaNode): Set<string> {
  return new Set(secretsIn(value, root).map((secret) => secret.name));
}

/** No secret's name has a default, so that what was asked for names all. */
function unsetSecrets(asked: unknown, root: SchemaNode, environment: ConfigSources["environment"]): Problem[] {
  return secretsIn(asked, root)
    .filter(({ name }) => (environment[name] ?? "").trim() === "")
    .map(({ path, name }) => ({ path, message: `expected a variable that is set, got no ${name} in the environment` }));
}

function secretsIn(value: unknown, node: SchemaNode | undefined, path: Path = []): { path: Path; name: string }[] {
  if (node === undefined || value === null || value === undefined) return [];
  if (node.secret === true) return typeof value === "string" ? [{ path, name: value }] : [];
  if (Array.isArray(value)) return value.flatMap((item, i) => secretsIn(item, node.items, [...path, i]));
  if (typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, item]) => {
    const extra = typeof node.additionalProperties === "object" ? node.additionalProperties : undefined;
    return secretsIn(item, node.properties?.[key] ?? extra, [...path, key]);
  });
}
