import { ConfigError } from "#config/config-error.ts";
import { policiesFrom, type SimulationPolicies, typeWith } from "#config/simulation-policies.ts";
import { problemLine } from "#config/problem.ts";
import type { ParameterValue } from "#core/plugin/spec.ts";
import { nested } from "./nested-parameters.ts";

/** Sections of a policies file, by their names, as they stand there. */
export type TemplateSections = Readonly<Record<string, unknown>>;

interface Template {
  readonly type?: unknown;
  readonly params?: Readonly<Record<string, unknown>>;
}

/** Sections with parameters set, and what they are. */
export interface PolicyTemplates {
  readonly sections: Readonly<Record<string, object>>;
  readonly policies: SimulationPolicies;
}

/**
 * Sections of a policies file with own parameters on top, by section and dotted path. A section that has none in `base` is
 * of the type that is given, else the first one that has all these parameters; another type than the base's begins afresh.
 * Undefined where nothing is given; throws ConfigError.
 */
export function templatesWith(
  own: Readonly<Record<string, Readonly<Record<string, ParameterValue>>>>,
  base: TemplateSections,
): PolicyTemplates | undefined {
  const sections: Record<string, object> = {};
  for (const [name, parameters] of Object.entries(own)) {
    const from = base[name] as Template | undefined;
    if (Object.keys(parameters).length === 0 && from === undefined) continue;
    sections[name] = sectionWith(name, parameters, from);
  }
  if (Object.keys(sections).length === 0) return undefined;
  return { sections, policies: policiesFrom(sections, (problem) => problemLine(problem)) };
}

function sectionWith(name: string, parameters: Readonly<Record<string, ParameterValue>>, from: Template | undefined) {
  const { type: given, ...dotted } = parameters;
  const params = nested(name, dotted);
  const type = given ?? from?.type ?? typeWith(name, params);
  if (type === undefined) {
    const names = Object.keys(params).join(", ");
    throw new ConfigError([
      `${name}.type: expected the type of a policies file's section ${name} that ${names} go with; none has all of them`,
    ]);
  }
  return { type, params: type === from?.type ? { ...from.params, ...params } : params };
}
