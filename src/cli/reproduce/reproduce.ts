import { existsSync } from "node:fs";
import { Command } from "commander";
import { ConfigError } from "#config/config-error.ts";
import { loadProfile, profileNames } from "#config/profile-file.ts";
import { addJson, addOutput } from "#drive/output-option.ts";
import { rareOption } from "#drive/rare-option.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";
import { type DecidedRun, readDecidedRun, routerOfHeader } from "#shadow/reproduce/decided-run.ts";
import { reproduce } from "#shadow/reproduce/reproduce.ts";
import { writeOutputs } from "#drive/output-file.ts";
import { TraceReader } from "#trace/reader.ts";
import { isTrace } from "#trace/segment-name.ts";
import { whole } from "../flag/flag-number.ts";
import { repeated } from "../flag/list-flag.ts";
import { doLongWork } from "../long-work/long-work.ts";
import { checkOutputFile } from "../output/check-output-file.ts";
import { reportNotes } from "../trace/report-notes.ts";
import { likelyFirst } from "./likely-profiles.ts";
import { reproductionText } from "./reproduction-text.ts";

interface ReproduceFlags {
  readonly profile?: readonly string[];
  readonly limit: number;
  readonly candidates: number;
  readonly json?: string;
  readonly output?: string;
}

const DECISIONS_DEFAULT = 10_000;
const DECISIONS_MAX = 1_000_000;
const CANDIDATES_DEFAULT = 1_500;
const CANDIDATES_MAX = 100_000;
/** Of fewer, either half shows nothing. */
const DECISIONS_MIN = 20;

/** Looks for the policy that another router's decisions are by. */
export function reproduceCommand(): Command {
  const command = new Command("reproduce")
    .description(
      "Find the policy behind recorded decisions, mostly another router's: each is decided again under many policies, beside the state that there really was; half of them choose the policy, the other half judges it.",
    )
    .argument("<trace>", "folder that `tap`, `trace import` or --record wrote")
    .option(
      "--profile <name>",
      "try these profiles and their variants alone, by name or path; repeat for more",
      repeated,
    )
    .addOption(
      rareOption(
        "--limit <decisions>",
        "look at so many decisions, from the first",
        whole(1, DECISIONS_MAX),
        DECISIONS_DEFAULT,
      ),
    )
    .addOption(rareOption("--candidates <n>", "policies to try at most", whole(1, CANDIDATES_MAX), CANDIDATES_DEFAULT));
  addOutput(command, "write the answer there, as JSON");
  addJson(command, "print the answer as JSON, in place of the tables");
  return command.action(answer);
}

async function answer(path: string, flags: ReproduceFlags): Promise<void> {
  if (!existsSync(path)) throw new ConfigError([`reproduce: expected a trace, got ${path}, which is not there`]);
  if (!(await isTrace(path))) throw new ConfigError([`reproduce: expected a recorded trace, got ${path}`]);
  checkOutputFile("--output", flags.output);
  checkOutputFile("--json", flags.json);
  const profiles = (flags.profile ?? profileNames()).map(loadProfile);
  const startedAt = performance.now();
  const { run, notes } = await decidedRun(path, flags.limit);
  for (const line of notes) process.stderr.write(`note: ${line}\n`);
  const tried = likelyFirst(profiles, routerOfHeader(run.header));
  const steps = reproduce({ run, profiles: tried, candidatesMax: flags.candidates });
  const result = await doLongWork({ cache: false }, (work) => work.inTurns(steps, "walks through the trace"));
  writeOutputs(flags, `${JSON.stringify({ ...result, notes })}\n`);
  if (flags.json !== "-" && flags.output !== "-") process.stdout.write(reproductionText(result, profiles));
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  process.stderr.write(`${run.decisions} decisions, ${result.candidates} policies tried in ${seconds} s\n`);
}

async function decidedRun(
  path: string,
  limit: number,
): Promise<{ readonly run: DecidedRun; readonly notes: string[] }> {
  const reader = new TraceReader(path);
  let run: DecidedRun;
  try {
    run = await readDecidedRun(reader.items(), limit);
  } catch (error) {
    throw new CommandFailure(error instanceof Error ? error.message : String(error));
  }
  const left = Object.entries(run.left).map(([reason, count]) => `${count} left out: ${reason}`);
  if (run.decisions < DECISIONS_MIN)
    throw new CommandFailure(
      [`${path}: expected ${DECISIONS_MIN} decisions or more, got ${run.decisions}`, ...left].join("\n  "),
    );
  return { run, notes: [...left, ...reportNotes(reader.report)] };
}
