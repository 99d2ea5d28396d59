import { rareOption } from "#drive/rare-option.ts";
import { Command, InvalidArgumentError, Option } from "commander";
import { addJson, addOutput } from "#drive/output-option.ts";
import { PROFILE_FILES } from "#config/profile-files.ts";
import { SMG_KINDS } from "#config/export-smg.ts";
import { OBJECTIVES, type ObjectiveName } from "#core/objective-names.ts";
import { amountFlag, shareFlag, whole } from "../flag/flag-number.ts";
import { names, repeated } from "../flag/list-flag.ts";
import { addCacheFlags } from "../long-work/long-work.ts";
import { addTrafficFlags } from "../rollout/traffic-flags.ts";
import { type SloFlags, sloOptions } from "./slo-targets.ts";
import type { TrafficFlags } from "../what-if/what-if-flags.ts";

/** Who is to run what is found. */
export const ROUTERS = ["gnomon", "llm-d", "aibrix", ...SMG_KINDS] as const;

export interface TuneFlags extends TrafficFlags, SloFlags {
  readonly objective: ObjectiveName;
  readonly profile: readonly string[];
  readonly for: (typeof ROUTERS)[number];
  readonly budget: number;
  readonly trials: number;
  readonly split: number;
  readonly replicas: number;
  readonly gainMin: number;
  readonly state?: string;
  readonly engines: readonly number[];
  readonly pd: boolean;
  readonly kind: readonly string[];
  readonly goodputMin: number;
  readonly threads?: number;
  readonly writeProfile?: string;
  readonly writeRollout?: string;
  readonly writeLlmD?: string;
  readonly writeAibrix?: string;
  readonly writeOptions?: string;
  readonly json?: string;
}

const ENGINES_MAX = 64;

const PROFILE_FILE = { as: "writeProfile", before: ["--write-profile"] };

/** The command with its options, and nothing behind it. */
export function tuneOptions(): Command {
  const command = new Command("tune")
    .description(
      "Search for a better policy for recorded traffic, and judge it on conversations that the search did not see.",
    )
    .argument(
      "<trace>",
      "folder that --record wrote, or a recorded workload (Mooncake, Bailian, Azure, WEKA, LMCache, token ids)",
    )
    .addOption(
      new Option("--objective <name>", "what to improve; goodput and cost need targets")
        .choices(OBJECTIVES)
        .default("e2e-mean" as const),
    );
  for (const option of sloOptions()) command.addOption(option);
  command
    .option(
      "--profile <name>",
      `profiles to start from, by name or the path of ${PROFILE_FILES}; repeat for more (default: those that come with gnomon)`,
      names,
      [],
    )
    .addOption(
      new Option("--for <router>", "search only policies that this router can be configured to")
        .choices(ROUTERS)
        .default("gnomon" as const),
    )
    .option("--budget <seconds>", "maximum time of the search", amountFlag(0.1, 86_400), 60)
    .addOption(
      rareOption(
        "--trials <n>",
        "maximum number of simulations; one of a sixth of the traffic counts as a sixth",
        whole(1, 1_000_000),
        100_000,
      ),
    )
    .addOption(rareOption("--split <share>", "part of the conversations that the search sees", shareFlag, 0.5))
    .addOption(
      rareOption(
        "--replicas <n>",
        "engines drawn from the calibration's residuals on which the result is judged",
        whole(2, 100),
        8,
      ),
    )
    .addOption(rareOption("--gain-min <share>", "smallest gain that counts as one", shareFlag, 0.01))
    .addOption(
      rareOption("--state <file>", "keep the search's results in this file, and continue from those already there"),
    )
    .option("--engines <n..m>", "also ask how many engines the traffic needs", range, [])
    .addOption(rareOption("--pd", "with --engines: also ask about engines that only compute prompts for others", false))
    .addOption(
      rareOption(
        "--kind <engine>",
        "with --engines: also ask about this kind of engine, by name or path; repeat for more",
        repeated,
        [],
      ),
    )
    .addOption(rareOption("--goodput-min <share>", "with --engines: the goodput that must be reached", shareFlag, 0.99))
    .addOption(
      rareOption("--threads <n>", "maximum number of threads (default: as many as there are cores)", whole(1, 256)),
    );
  addWriteFlags(command);
  addOutput(command, "write the profile found there, if it is better", PROFILE_FILE);
  addJson(command, "print the answer as JSON, in place of the tables");
  return addCacheFlags(addTrafficFlags(command));
}

/** What of the policy found is written, and for whom. */
function addWriteFlags(command: Command): void {
  const options = `write it as options of the command line of --for (${SMG_KINDS.join(", ")})`;
  command
    .option("--write-rollout <file>", "write a rollout of it, planned by simulation, for rollout start")
    .option("--write-llm-d <file>", "write it as an EndpointPickerConfig for llm-d")
    .addOption(rareOption("--write-aibrix <file>", "write it as environment variables for AIBrix"))
    .addOption(rareOption("--write-options <file>", options));
}

function range(text: string): readonly number[] {
  const [, from = "", until = from] = /^(\d+)(?:\.\.(\d+))?$/.exec(text) ?? [];
  const [low, high] = [Number(from), Number(until)];
  if (from === "" || low < 1 || high < low || high > ENGINES_MAX)
    throw new InvalidArgumentError(`expected a range such as 2..8, to ${ENGINES_MAX}`);
  return Array.from({ length: high - low + 1 }, (_, i) => low + i);
}
