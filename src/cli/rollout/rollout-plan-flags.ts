import { RARE, rareOption } from "#drive/rare-option.ts";
import { Command, InvalidArgumentError, Option } from "commander";
import { addJson, addOutput } from "#drive/output-option.ts";
import { PROFILE_FILES } from "#config/profile-files.ts";
import { CANARY_STEPS_DEFAULT } from "#config/rollout-section.ts";
import { TIME_METRICS } from "#core/rollout/judge/outcome.ts";
import { type PlannedFigureKey, PLANNED_FIGURES } from "#shadow/job/rollout-sample.ts";
import { amountFlag, shareFlag, whole } from "../flag/flag-number.ts";
import { listFlag, repeated } from "../flag/list-flag.ts";
import type { TrafficFlags } from "../what-if/what-if-flags.ts";
import { addCacheFlags } from "../long-work/long-work.ts";
import { addTrafficFlags } from "./traffic-flags.ts";

export interface RolloutPlanFlags extends TrafficFlags {
  readonly arm: readonly string[];
  readonly design: readonly string[];
  readonly window: readonly number[];
  readonly steps: readonly number[];
  readonly metric: PlannedFigureKey;
  readonly power: number;
  readonly level: number;
  readonly hours: readonly number[];
  readonly runs?: number;
  readonly threads?: number;
  readonly json?: string;
  readonly write?: string;
}

/** Names of designs that --design accepts; each stands for all that begin with it. */
const DESIGN_NAMES = ["switchback", "pools", "split", "canary"] as const;

const FIGURES: readonly PlannedFigureKey[] = TIME_METRICS.flatMap((metric) =>
  PLANNED_FIGURES.map((figure): PlannedFigureKey => `${metric}.${figure}`),
);
const HOURS_DEFAULT: readonly number[] = [24];
const RUNS_MAX = 10_000;
const WINDOW_SECONDS_MAX = 86_400;
const SEVERAL = "repeated or after commas for several";

/** The command with its options, and nothing behind it. */
export function rolloutPlanOptions(): Command {
  const command = new Command("plan")
    .description(
      "Simulate rollouts of one profile against another on recorded traffic: what each design gets wrong, what it finds, and how long it takes.",
    )
    .argument(
      "<trace>",
      "folder that --record wrote, or a recorded workload (Mooncake, Bailian, Azure, WEKA, LMCache, token ids)",
    )
    .addOption(
      new Option("--arm <name>", `profile by name or the path of ${PROFILE_FILES}; given twice, the control first`)
        .argParser(repeated)
        .default([], "none"),
    )
    .addOption(
      new Option("--design <name>", `designs to compare: ${DESIGN_NAMES.join(", ")}; ${SEVERAL}`)
        .argParser(designs)
        .default([], "all"),
    )
    .addOption(
      new Option("--window <seconds>", `lengths of a switchback's windows; ${SEVERAL}`)
        .argParser(listFlag(amountFlag(1, WINDOW_SECONDS_MAX)))
        .default([], "up to three that the trace has room for"),
    )
    .addOption(
      new Option("--steps <percents>", "steps of a canary, after commas")
        .argParser(percents)
        .default(CANARY_STEPS_DEFAULT, CANARY_STEPS_DEFAULT.join(","))
        .helpGroup(RARE),
    )
    .addOption(
      new Option("--metric <figure>", "figure in which the rollout must find a difference")
        .choices(FIGURES)
        .default("e2e.mean" as const),
    )
    .addOption(rareOption("--power <share>", "probability of finding a difference that is there", shareFlag, 0.8))
    .addOption(
      rareOption(
        "--level <share>",
        "probability of reporting one, at any time of looking, where there is none",
        shareFlag,
        0.05,
      ),
    )
    .addOption(
      new Option("--hours <n>", `durations for which detectable differences are stated; ${SEVERAL}`)
        .argParser(hours)
        .default(HOURS_DEFAULT, HOURS_DEFAULT.join(",")),
    )
    .addOption(
      rareOption(
        "--runs <n>",
        "simulated rollouts of each design (default: as many as take about a minute)",
        whole(1, RUNS_MAX),
      ),
    )
    .addOption(
      rareOption("--threads <n>", "maximum number of threads (default: as many as there are cores)", whole(1, 256)),
    );
  addOutput(command, "write the recommended rollout there as YAML, for rollout start; - for stdout", {
    as: "write",
    before: ["--write"],
  });
  addJson(command, "print the plan as JSON, in place of the tables");
  return addCacheFlags(addTrafficFlags(command));
}

function designs(text: string, before: readonly string[]): readonly string[] {
  const named = text.split(",").map((name) => name.trim());
  for (const name of named) {
    if (!DESIGN_NAMES.some((known) => known === name))
      throw new InvalidArgumentError(`expected ${DESIGN_NAMES.join(", ")}`);
  }
  return [...before, ...named];
}

function percents(text: string): readonly number[] {
  const steps = text.split(",").map(Number);
  const rise = steps.every((step, i) => step > (steps[i - 1] ?? 0) && step <= 100);
  if (!rise) throw new InvalidArgumentError("expected rising numbers above 0, at most 100");
  return steps;
}

const HOURS = listFlag(amountFlag(0.01, 24 * 365));

/** The first one takes the place of the default. */
function hours(text: string, before: readonly number[]): readonly number[] {
  return HOURS(text, before === HOURS_DEFAULT ? [] : before);
}
