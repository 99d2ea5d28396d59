import { engineNames, loadEngine } from "#config/engine-file.ts";
import { linearStepTimes } from "#config/linear-step-times.ts";
import { namedStepTimes } from "#config/named-step-times.ts";
import type { StepTimes } from "#core/endpoint/step-times.ts";

const LABEL = "gnomon/engine";

/**
 * What steps take at a pod, by its label gnomon/engine where that is an engine that comes with gnomon (whoever labels pods
 * shall not name files of this machine), else at the engine that the configuration names. Throws ConfigError for that one.
 */
export function podStepTimes(
  engine: string | undefined,
): (labels: Readonly<Record<string, string>>) => StepTimes | undefined {
  const usual = namedStepTimes(engine);
  const shipped = new Set(engineNames());
  const known = new Map<string, StepTimes | undefined>();
  return (labels) => {
    const name = labels[LABEL] ?? "";
    if (!shipped.has(name)) return usual;
    if (!known.has(name)) known.set(name, linearStepTimes(loadEngine(name)) ?? usual);
    return known.get(name);
  };
}
