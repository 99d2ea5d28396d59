import * as z from "zod";
import { ConfigError } from "./config-error.ts";
import { endpoint } from "./endpoint-section.ts";
import { checkShape, type Problem, problemLine } from "./problem.ts";
import { parseYamlFile } from "./yaml-file.ts";

const ENDPOINTS_MAX = 4096;

const listed = endpoint.extend({
  cordoned: z.boolean().default(false).describe("It gets no new requests; those it has it finishes."),
});

const SCHEMA = z.strictObject({ endpoints: z.array(listed).max(ENDPOINTS_MAX) });

/** An engine as a file lists it. */
export type ListedEndpoint = z.infer<typeof listed>;

/**
 * The engines of a file's text, YAML or JSON: `endpoints`, a list as of the configuration, each with `cordoned` where it
 * is to get nothing new. An empty list is a list. Throws ConfigError with every problem, its line and the file.
 */
export function parseEndpointsFile(file: string, text: string): ListedEndpoint[] {
  const yaml = parseYamlFile(file, text);
  if (!yaml.ok) throw new ConfigError(yaml.problems.map((problem) => problemLine(problem)));
  const { value, lineOf } = yaml.value;
  const shape = checkShape(SCHEMA, value);
  if (shape.ok) return shape.value.endpoints;
  const lineOfProblem = (problem: Problem): string => problemLine(problem, `${file} line ${lineOf(problem.path)}`);
  throw new ConfigError(shape.problems.map(lineOfProblem));
}
