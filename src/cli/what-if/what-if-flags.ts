import { RARE, rareOption } from "#drive/rare-option.ts";
import { Command, Option } from "commander";
import { addJson, addOutput } from "#drive/output-option.ts";
import { OBJECTIVES } from "#core/objective-names.ts";
import { PROFILE_FILES } from "#config/profile-files.ts";
import { CONVERSATIONS, type Conversations } from "#shadow/recorded/conversations.ts";
import { SCALE_POLICIES } from "#core/autoscale/scale-policy.ts";
import { type ArchitectureFlags, architectureOptions } from "../flag/architecture-flags.ts";
import { type AutoscaleFlags, autoscaleOptions } from "../flag/autoscale-flags.ts";
import { LOSE_FLAG, LOSE_MEANING, type LostEndpoint, lostEndpoints } from "../flag/lost-endpoint.ts";
import { askedStageOptions } from "../flag/stage-flags.ts";
import { type RouterFlags, ROUTERS_MAX, ROUTERS_MEANING, routerOptions } from "../flag/router-flags.ts";
import { amountFlag, shareFlag, whole } from "../flag/flag-number.ts";
import { listFlag, names, repeated } from "../flag/list-flag.ts";
import { addCacheFlags, type LongWorkFlags } from "../long-work/long-work.ts";
import type { WhatIfObjective } from "./objective-sentence.ts";
import { addSizeFlags, type SizeFlags } from "../calibrate/engine-sizes.ts";

export interface WhatIfFlags extends LongWorkFlags, SizeFlags, RouterFlags, AutoscaleFlags, ArchitectureFlags {
  readonly autoscale: readonly string[];
  readonly slo?: string;
  readonly objective?: WhatIfObjective;
  readonly all?: boolean;
  readonly hpa?: string;
  readonly hpaDeployment: string;
  readonly routers: readonly number[];
  readonly profile: readonly string[];
  readonly inForce?: string;
  readonly engine: readonly string[];
  readonly endpoints: readonly number[];
  readonly rateScale: readonly number[];
  readonly lose: readonly LostEndpoint[];
  readonly capped?: number;
  readonly conversations: Conversations;
  readonly limit: number;
  readonly replicas?: number;
  readonly stepError?: number;
  readonly speed?: "trace" | "engine";
  readonly regret: number;
  readonly counterfactualK: number;
  readonly scrapeInterval?: number;
  readonly signals: "same" | "own";
  readonly requestDelay: number;
  readonly answerDelay: number;
  readonly seed: number;
  readonly threads?: number;
  readonly json?: string;
  readonly html?: string;
  readonly output?: string;
}

/** What of them states where the traffic comes from and what it is simulated on. */
export type TrafficFlags = Omit<
  WhatIfFlags,
  | keyof RouterFlags
  | keyof AutoscaleFlags
  | keyof ArchitectureFlags
  | "autoscale"
  | "slo"
  | "hpa"
  | "hpaDeployment"
  | "profile"
  | "lose"
  | "routers"
  | "replicas"
  | "regret"
  | "counterfactualK"
  | "signals"
  | "threads"
  | "json"
  | "html"
  | "output"
  | "objective"
  | "all"
> &
  Partial<ArchitectureFlags>;

/** Requests of a trace that are held in memory, unless a flag sets another limit. */
export const LIMIT_DEFAULT = 1_000_000;
const REPLICAS_MAX = 1_000;
export const ENDPOINTS_MAX = 10_000;
const DECISIONS_MAX = 10_000;
/** Beyond these a value is a slip, or asks for little but scrapes while requests wait. */
export const RATE_SCALE_MIN = 0.001;
export const RATE_SCALE_MAX = 1e6;
export const SCRAPE_MILLIS_MAX = 1e7;

const AGAIN = "further values, repeated or after commas, are asked about as well";

const CONVERSATIONS_MEANING =
  "which turns wait for the previous one: those of sessions that clients named, or also those whose prompts " +
  "continue one another; use named for load generators that do not wait";
const SIGNALS_MEANING =
  "own: each profile reads gauges as often as it is made for (gnomon profiles NAME shows it), the one in force as the " +
  "trace shows; same: all of them as the one in force";

export const SCRAPE_MEANING =
  "time between two scrapes of an endpoint under every profile (default: each profile's own)";

/** The command with its options, and nothing behind it. */
export function whatIfOptions(): Command {
  const command = new Command("what-if")
    .description(
      "Simulate recorded traffic under other profiles and show them beside the one in force, with the model's own error.",
    )
    .argument(
      "<trace>",
      "folder that --record wrote, or a recorded workload (Mooncake, Bailian, Azure, WEKA, LMCache, token ids)",
    )
    .option(
      "--profile <name>",
      `profiles to ask about, by name or the path of ${PROFILE_FILES}; repeat for more`,
      names,
      [],
    )
    .addOption(
      rareOption("--in-force <name>", "profile that the traffic was routed by (default: the trace's own, else gnomon)"),
    )
    .option(
      "--engine <file>",
      "engine by name or path, ideally one written by calibrate (default: what the trace states about its engines, else calibrated from it); repeat to ask about several",
      repeated,
      [],
    )
    .option(
      "--endpoints <n>",
      `ask about a fleet of this many equal endpoints; for a foreign workload the first value is its own fleet (default: 4); ${AGAIN}`,
      listFlag(whole(1, ENDPOINTS_MAX)),
      [],
    )
    .addOption(
      rareOption(
        "--rate-scale <x>",
        `ask about the arrival rate multiplied by this; for a foreign workload the first value is its own rate (default: 1); ${AGAIN}`,
        listFlag(amountFlag(RATE_SCALE_MIN, RATE_SCALE_MAX)),
        [],
      ),
    )
    .option(LOSE_FLAG, `ask about a lost engine: ${LOSE_MEANING}, all in one scenario`, lostEndpoints, [])
    .addOption(rareOption("--capped <turns>", "keep only the first turns of each conversation", whole(1, Infinity)))
    .addOption(
      new Option("--conversations <kind>", CONVERSATIONS_MEANING)
        .choices(CONVERSATIONS)
        .default(CONVERSATIONS[0])
        .helpGroup(RARE),
    )
    .option("--limit <n>", "maximum number of requests, the first to arrive", whole(1, Infinity), LIMIT_DEFAULT)
    .option(
      "--replicas <n>",
      "simulations on engines drawn from the calibration's residuals, which give prediction intervals; 0 for none " +
        "(default: 40, fewer or none for many requests and candidates)",
      whole(0, REPLICAS_MAX),
    );
  addOutput(command, "write the answer there: a self-contained HTML page where the name ends in .html, else JSON");
  command.addOption(new Option("--html <file>").hideHelp());
  addJson(command, "print the answer as JSON, in place of the table");
  return addCacheFlags(addSizeFlags(withArchitecture(withAutoscaler(withRouters(withSimulation(command))))));
}

/** How the answer is computed, and where it goes. */
function withSimulation(command: Command): Command {
  return command
    .addOption(
      rareOption(
        "--step-error <share>",
        "standard error of all step times, for an engine without residuals",
        shareFlag,
      ),
    )
    .addOption(
      rareOption(
        "--speed <from>",
        "how fast the engine was in a trace that it was not fitted to: as the trace's own answers show, or as in the " +
          "runs that were fitted, with what another run may differ by",
      )
        .choices(["trace", "engine"])
        .default("trace"),
    )
    .addOption(rareOption("--regret <n>", "counterfactual decisions of each candidate", whole(0, DECISIONS_MAX), 0))
    .addOption(rareOption("--counterfactual-k <count>", "other endpoints to try for each of them", whole(1, 100), 2))
    .addOption(rareOption("--scrape-interval <millis>", SCRAPE_MEANING, amountFlag(1, SCRAPE_MILLIS_MAX)))
    .addOption(new Option("--signals <kind>", SIGNALS_MEANING).choices(["own", "same"]).default("own").helpGroup(RARE))
    .addOption(
      rareOption(
        "--request-delay <micros>",
        "time from the decision until the engine has the request",
        whole(0, 1e9),
        0,
      ),
    )
    .addOption(
      rareOption("--answer-delay <micros>", "time from the engine until the client has a token", whole(0, 1e9), 0),
    )
    .addOption(
      rareOption(
        "--seed <n>",
        "seed of what intervals draw, and of the router's draws if the trace has none",
        whole(0, Infinity),
        0,
      ),
    )
    .addOption(
      rareOption("--threads <n>", "maximum number of threads (default: as many as there are cores)", whole(1, 256)),
    );
}

function withAutoscaler(command: Command): Command {
  const meaning =
    `ask about a fleet that this autoscaling policy scales: ${SCALE_POLICIES.join(", ")}, optionally with parameters ` +
    "(target-utilization:target_utilization=0.5); repeat for more";
  command.option("--autoscale <policy>", meaning, repeated, []);
  for (const option of autoscaleOptions()) command.addOption(option);
  return command
    .addOption(
      new Option("--objective <figure>", "what you want to be better; the first sentence answers it").choices(
        OBJECTIVES.filter((name) => name !== "cost"),
      ),
    )
    .option("--all", "print every table on a terminal too")
    .option(
      "--slo <targets>",
      "class:ttft:tpot:e2e in milliseconds, comma-separated, for goodput; an empty part is no target, * is any class",
    )
    .addOption(
      rareOption(
        "--hpa <file>",
        "write a HorizontalPodAutoscaler for the cheapest --autoscale queue-depth that is within a point of the best goodput",
      ),
    )
    .addOption(rareOption("--hpa-deployment <name>", "name of the engines' Deployment in it", "vllm"));
}

function withArchitecture(command: Command): Command {
  const meaning =
    "ask about every profile on a fleet in which some engines compute prompts and others answer (pd), or all do both " +
    "(colocated)";
  for (const option of architectureOptions(meaning)) command.addOption(option);
  return command;
}

function withRouters(command: Command): Command {
  const meaning = `ask about this many ${ROUTERS_MEANING}; ${AGAIN}`;
  command.addOption(rareOption("--routers <n>", meaning, listFlag(whole(1, ROUTERS_MAX)), []));
  for (const option of [...routerOptions(), ...askedStageOptions(AGAIN)]) command.addOption(option);
  return command;
}
