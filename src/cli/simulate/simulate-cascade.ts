import { roomTokens } from "#engine/config.ts";
import * as z from "zod";
import { ConfigError } from "#config/config-error.ts";
import { loadEngine } from "#config/engine-file.ts";
import { checkShape, problemLine } from "#config/problem.ts";
import { readYamlFile } from "#config/yaml-file.ts";
import { numberedIds } from "#core/endpoint/numbered-ids.ts";
import { type CascadeFigures, type SimulatedCascade, simulatedCascade } from "#sim/cascade/cascade-stage.ts";
import type { EngineSpec } from "#sim/fleet/engine-fleet.ts";
import { stagesAsked } from "../flag/stage-flags.ts";
import { percentOf } from "../output/figure-text.ts";
import type { SimulateFlags } from "./simulate-flags.ts";
import type { StageOption, StagePlan } from "./stage-option.ts";

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

type CascadeFile = z.output<typeof FILE>;

/** A simulated cascade: its models, their engines, and how sure they are. Throws ConfigError with every problem. */
function readCascadeFile(path: string): CascadeFile {
  const yaml = readYamlFile(path);
  if (!yaml.ok) throw new ConfigError(yaml.problems.map((problem) => problemLine(problem)));
  const checked = checkShape(FILE, yaml.value.value);
  if (checked.ok) return checked.value;
  throw new ConfigError(
    checked.problems.map((problem) => problemLine(problem, `${path} line ${yaml.value.lineOf(problem.path)}`)),
  );
}

/** The cascade that all requests ask for, and its engines in place of `--engine`; undefined without one. */
function planOf(flags: CascadeFlags): StagePlan | undefined {
  if (flags.cascade === undefined) return undefined;
  const problems = [
    ["--lose", flags.lose.length > 0],
    ["--set", flags.set.length > 0],
    ...stagesAsked(flags),
    ["--autoscaler-enabled", flags.autoscalerEnabled],
    ["--engine", flags.engine !== undefined],
    ["--model-config", flags.modelConfig !== undefined],
    ["--model", flags.model !== undefined],
    ["--routers", flags.routers > 1],
  ].flatMap(([flag, given]) => (given === true ? [`--cascade: expected without ${flag}, got both`] : []));
  if (problems.length > 0) throw new ConfigError(problems);
  const file = readCascadeFile(flags.cascade);
  return {
    stage: simulatedCascade(cascadeOf(file)),
    engines: file.steps.flatMap((step) => enginesOf(step, file, flags)),
  };
}

function cascadeOf({ name, steps, judgedTokens, escalationsInFlightMax }: CascadeFile): SimulatedCascade {
  return {
    spec: {
      name,
      steps: steps.map(({ model, logprobMin }) => ({ model, ...(logprobMin !== undefined && { logprobMin }) })),
      judgedTokensMax: judgedTokens ?? Infinity,
    },
    confidence: steps.map((step) => ({
      mean: step.logprobMean,
      deviation: step.logprobDeviation,
      tokenDeviation: step.tokenDeviation,
    })),
    escalationsInFlightMax,
    heldBytesMax: Infinity,
  };
}

function enginesOf(
  { model, engine, instances, logprobMin }: CascadeFile["steps"][number],
  { judgedTokens }: CascadeFile,
  { tokenGaps, check }: SimulateFlags,
): EngineSpec[] {
  const loaded = loadEngine(engine);
  // Where a single token in the middle of an answer counts, an engine cannot pass over it.
  const coalesce = loaded.coalesce && !tokenGaps && (logprobMin === undefined || judgedTokens === undefined);
  const config = { ...loaded, coalesce, check };
  return numberedIds(model, instances).map((id) => ({
    config,
    endpoint: {
      id,
      models: [model],
      labels: {},
      kvCapacityTokens: config.dataParallel * roomTokens(config),
      concurrencyMax: config.dataParallel * config.sequencesMax,
    },
  }));
}

function rowsOf({ escalated, escalatedShare, kept }: CascadeFigures): [string, string][] {
  const reasons = Object.entries(kept).map(([reason, count]) => `${count} ${reason}`);
  const given = `${percentOf(escalatedShare)} of requests escalated (${escalated.join(", then ")})`;
  return [["cascade", [given, ...reasons].join(", ")]];
}

interface CascadeFlags extends SimulateFlags {
  readonly cascade?: string;
}

/** A simulation in which all requests ask for a cascade. */
export const CASCADE_OPTION: StageOption = {
  name: "cascade",
  flags: [
    [
      "--cascade <file>",
      "YAML file of the models that are asked one after another, with their engines and the confidence of their answers",
    ],
  ],
  planOf,
  rowsOf: (figures) => rowsOf(figures as CascadeFigures),
};
