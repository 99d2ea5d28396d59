import * as z from "zod";
import { ConfigError } from "./config-error.ts";
import { checkShape, problemLine } from "./problem.ts";
import { readYamlFile } from "./yaml-file.ts";

const logprob = () => z.number().min(-1000).max(0);

const step = z.strictObject({
  model: z.string().min(1).max(256),
  /** Engine by name or path. */
  engine: z.string().min(1),
  instances: z.int().min(1).max(10_000),
  /** Of all steps but the last. */
  logprobMin: logprob().optional(),
  /** Mean and deviation of its answers' mean log-probabilities, and the deviation of single tokens within an answer. */
  logprobMean: logprob().default(0),
  logprobDeviation: z.number().min(0).max(1000).default(0),
  tokenDeviation: z.number().min(0).max(1000).default(0),
});

const FILE = z.strictObject({
  name: z.string().min(1).default("cascade"),
  steps: z
    .array(step)
    .min(2)
    .max(8)
    .refine((steps) => steps.every(({ logprobMin }, i) => (logprobMin === undefined) === (i === steps.length - 1)), {
      message: "logprobMin with every step but the last",
    }),
  /** All where it is left out. */
  judgedTokens: z.int().min(1).max(1_000_000).optional(),
  escalationsInFlightMax: z.int().min(1).max(1_000_000).default(256),
});

export type CascadeFile = z.output<typeof FILE>;

/** A simulated cascade: its models, their engines, and how sure they are. Throws ConfigError with every problem. */
export function readCascadeFile(path: string): CascadeFile {
  const yaml = readYamlFile(path);
  if (!yaml.ok) throw new ConfigError(yaml.problems.map((problem) => problemLine(problem)));
  const checked = checkShape(FILE, yaml.value.value);
  if (checked.ok) return checked.value;
  throw new ConfigError(
    checked.problems.map((problem) => problemLine(problem, `${path} line ${yaml.value.lineOf(problem.path)}`)),
  );
}
