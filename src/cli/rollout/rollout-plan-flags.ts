import { Command, InvalidArgumentError, Option } from "commander";
import { PROFILE_FILES } from "#config/profile-files.ts";
import { TIME_METRICS } from "#core/rollout/judge/outcome.ts";
import { CONVERSATIONS } from "#shadow/recorded/conversations.ts";
import { type FigureKey, PLANNED_FIGURES } from "#shadow/rollout/rollout-sample.ts";
import { addSizeFlags } from "../calibrate/engine-sizes.ts";
import { amount, listOf, share, whole } from "../flag-number.ts";
import {
  ENDPOINTS_MAX,
  LIMIT_DEFAULT,
  RATE_SCALE_MAX,
  RATE_SCALE_MIN,
  SCRAPE_MILLIS_MAX,
  type TrafficFlags,
} from "../what-if/what-if-flags.ts";

export interface RolloutPlanFlags extends TrafficFlags {
  readonly arm: readonly string[];
  readonly design: readonly string[];
  readonly window: readonly number[];
  readonly steps: readonly number[];
  readonly metric: FigureKey;
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

const FIGURES: readonly FigureKey[] = TIME_METRICS.flatMap((metric) =>
  PLANNED_FIGURES.map((figure): FigureKey => `${metric}.${figure}`),
);
const HOURS_DEFAULT: readonly number[] = [24];
const STEPS_DEFAULT: readonly number[] = [1, 5, 25, 50, 100];
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
      "folder that --record wrote, or a recorded workload (Mooncake, Azure, WEKA, LMCache, token ids)",
    )
    .addOption(
      new Option("--arm <name>", `profile by name or the path of ${PROFILE_FILES}; given twice, the control first`)
        .argParser((name: string, before: readonly string[]) => [...before, name])
        .default([], "none"),
    )
    .addOption(
      new Option("--design <name>", `designs to compare: ${DESIGN_NAMES.join(", ")}; ${SEVERAL}`)
        .argParser(designs)
        .default([], "all"),
    )
    .addOption(
      new Option("--window <seconds>", `lengths of a switchback's windows; ${SEVERAL}`)
        .argParser(listOf(amount(1, WINDOW_SECONDS_MAX)))
        .default([], "up to three that the trace has room for"),
    )
    .addOption(
      new Option("--steps <percents>", "steps of a canary, after commas")
        .argParser(percents)
        .default(STEPS_DEFAULT, STEPS_DEFAULT.join(",")),
    )
    .addOption(
      new Option("--metric <figure>", "what the rollout is to find").choices(FIGURES).default("e2e.mean" as const),
    )
    .option("--power <share>", "probability to find the difference that is there", share, 0.8)
    .option("--level <share>", "probability to find one, at any time of looking, where there is none", share, 0.05)
    .addOption(
      new Option("--hours <n>", `durations that detectable differences are stated for; ${SEVERAL}`)
        .argParser(hours)
        .default(HOURS_DEFAULT, HOURS_DEFAULT.join(",")),
    )
    .option(
      "--runs <n>",
      "simulated rollouts of each design (default: as many as take about a minute)",
      whole(1, RUNS_MAX),
    )
    .option("--threads <n>", "threads at most (default: as many as there are cores)", whole(1, 256))
    .option("--write <file>", "write the recommended rollout as YAML, as rollout start takes it; - for stdout")
    .option("--json <file>", "write the plan as JSON; - for stdout, without the tables");
  return addSizeFlags(withTraffic(command));
}

/** Where the traffic comes from and what it is simulated on. */
function withTraffic(command: Command): Command {
  return command
    .option("--in-force <name>", "profile that the traffic was routed by (default: the trace's own, else gnomon)")
    .addOption(
      new Option("--engine <file>", "engine by name or path, best one that calibrate wrote")
        .argParser((name: string) => [name])
        .default([], "as what-if chooses it"),
    )
    .addOption(
      new Option("--endpoints <n>", "of a foreign workload: its endpoints")
        .argParser(one(whole(1, ENDPOINTS_MAX)))
        .default([], "4"),
    )
    .addOption(
      new Option("--rate-scale <x>", "of a foreign workload: arrivals so many times as fast")
        .argParser(one(amount(RATE_SCALE_MIN, RATE_SCALE_MAX)))
        .default([], "1"),
    )
    .option("--capped <turns>", "only the first turns of each conversation", whole(1, Infinity))
    .addOption(
      new Option("--conversations <kind>", "which turns of a trace wait for the one before, as of what-if")
        .choices(CONVERSATIONS)
        .default(CONVERSATIONS[0]),
    )
    .option("--limit <n>", "requests at most, the first to arrive", whole(1, Infinity), LIMIT_DEFAULT)
    .option("--step-error <share>", "standard error of all step times, for an engine without residuals", share)
    .option("--scrape-interval <millis>", "time between two scrapes of an endpoint", amount(1, SCRAPE_MILLIS_MAX), 1000)
    .option("--request-delay <micros>", "from the decision until the engine has the request", whole(0, 1e9), 0)
    .option("--answer-delay <micros>", "from the engine until the client has a token", whole(0, 1e9), 0)
    .option("--seed <n>", "of the router's draws where the trace has none, and of the arms", whole(0, Infinity), 0);
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

const HOURS = listOf(amount(0.01, 24 * 365));

/** The first one takes the place of the default. */
function hours(text: string, before: readonly number[]): readonly number[] {
  return HOURS(text, before === HOURS_DEFAULT ? [] : before);
}

function one(parse: (text: string) => number): (text: string) => readonly number[] {
  return (text) => [parse(text)];
}
