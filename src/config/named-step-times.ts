import type { StepTimes } from "#core/endpoint/step-times.ts";
import { linearStepTimes } from "./linear-step-times.ts";
import { ConfigError } from "./config-error.ts";
import { loadEngine } from "./engine-file.ts";

/** What steps take at an engine that is named, by name or path; undefined without one. Throws ConfigError. */
export function namedStepTimes(engine: string | undefined): StepTimes | undefined {
  if (engine === undefined) return undefined;
  const times = linearStepTimes(loadEngine(engine));
  if (times === undefined) {
    throw new ConfigError([`engine: ${engine} is a record of measured steps, from which no others can be predicted`]);
  }
  return times;
}
