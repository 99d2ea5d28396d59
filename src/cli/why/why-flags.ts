import { Command, Option } from "commander";
import { addJson, addOutput } from "#drive/output-option.ts";
import { rareOption } from "#drive/rare-option.ts";
import { amountFlag, whole } from "../flag/flag-number.ts";
import { addCacheFlags } from "../long-work/long-work.ts";
import { addTrafficFlags } from "../rollout/traffic-flags.ts";
import type { TrafficFlags } from "../what-if/what-if-flags.ts";

/** Times that can be asked about. */
export const OBJECTIVES = ["ttft-mean", "ttft-p99", "e2e-mean", "e2e-p99"] as const;

export interface WhyFlags extends TrafficFlags {
  readonly request?: string;
  readonly objective: (typeof OBJECTIVES)[number];
  readonly percentile?: number;
  readonly against: string;
  readonly replicas?: number;
  readonly work: number;
  readonly json?: string;
  readonly output?: string;
}

const REPLICAS_MAX = 100;
const WORK_MAX = 100_000_000;
/** Requests that are simulated in all: some tens of seconds of CPU. */
const WORK_DEFAULT = 150_000;

/** The command with its options, and nothing behind it. */
export function whyOptions(): Command {
  const command = new Command("why")
    .description(
      "Explain where cached tokens were lost and why answers are slow, by simulating the traffic again with causes taken out.",
    )
    .argument(
      "<trace>",
      "folder that --record wrote, or a recorded workload (Mooncake, Bailian, Azure, WEKA, LMCache, token ids)",
    )
    .option("--request <id>", "explain one request of a recorded trace, by its answer's x-request-id or id")
    .addOption(
      new Option("--objective <time>", "the time to explain").choices(OBJECTIVES).default("ttft-mean" as const),
    )
    .option("--percentile <p>", "a percentile of that time, in place of its mean or p99", amountFlag(0.1, 99.99))
    .addOption(rareOption("--against <profile>", "the policy that the one in force is held against", "gnomon"))
    .addOption(
      rareOption(
        "--replicas <n>",
        "simulations of each on engines drawn from the calibration's residuals, for intervals (default: as many as --work has room for, 8 at most)",
        whole(0, REPLICAS_MAX),
      ),
    )
    .addOption(
      rareOption(
        "--work <requests>",
        "simulated requests in all, over all simulations; where they do not suffice, some orders of causes are drawn",
        whole(1, WORK_MAX),
        WORK_DEFAULT,
      ),
    );
  addOutput(command, "write the answer there, as JSON");
  addJson(command, "print the answer as JSON, in place of the tables");
  return addCacheFlags(addTrafficFlags(command));
}
