import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { Command } from "commander";
import { ConfigError } from "#config/config-error.ts";
import { COMPARED, compareRuns, type PolicyFigures, type TransferAnswer } from "#shadow/question/compare.ts";
import { figuresInResults, figuresOfRun, RESULT_FORMATS } from "#shadow/question/compare-results.ts";
import { isTrace } from "#trace/segment-name.ts";
import { compareTable } from "./compare-table.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";
import { readRecordedTrace } from "../trace/recorded-trace.ts";

/** Reports how far simulations of several policies are to be trusted, from live runs of them. */
export function compareCommand(): Command {
  return new Command("compare")
    .description("Compare live runs of several policies with their simulations: ranks, gaps and the order of pairs.")
    .argument(
      "<live>",
      "folder of live results, one <policy>.json of drive --json or one recorded trace <policy>/ each, or one such file or trace",
    )
    .argument("<simulated>", "folder of results of simulate or what-if, or an answer of what-if --json")
    .option("--json", "print JSON", false)
    .action(async (live: string, simulated: string, { json }: { readonly json: boolean }) => {
      const answer = compareRuns(await resultsAt(live, "live"), await resultsAt(simulated, "simulated"));
      const { policies, onlyLive, onlySimulated } = answer;
      for (const name of onlyLive) process.stderr.write(`note: ${name} was not simulated\n`);
      for (const name of onlySimulated) process.stderr.write(`note: ${name} was not run live\n`);
      if (policies.length === 0) throw new CommandFailure(tooFew(answer));
      if (Object.keys(answer.figures).length === 0)
        throw new CommandFailure(`the results have none of ${COMPARED.join(", ")} in common`);
      process.stdout.write(json ? `${JSON.stringify(answer)}\n` : compareTable(answer));
    });
}

function tooFew({ onlyLive, onlySimulated }: TransferAnswer): string {
  const list = (names: readonly string[]) => (names.length === 0 ? "none" : names.join(", "));
  return (
    `expected a policy or more with live and simulated results, got none; only live: ` +
    `${list(onlyLive)}; only simulated: ${list(onlySimulated)}`
  );
}

/** What results stand for in the comparison. */
type Side = "live" | "simulated";

/** Every policy found at a path. Two results for one policy are refused: it is not known which one counts. */
async function resultsAt(path: string, side: Side): Promise<PolicyFigures[]> {
  if (!existsSync(path)) throw new ConfigError([`compare: expected results, got ${path}, which is not there`]);
  const found: PolicyFigures[] = [];
  const sources = await sourcesAt(path);
  for (const one of sources) found.push(...(await figuresAt(one, one === path, side)));
  if (found.length === 0)
    throw new CommandFailure(`${path}: expected results (*.json) or traces, got a folder without any`);
  const names = new Set<string>();
  for (const { policy } of found) {
    if (names.has(policy)) throw new CommandFailure(`${path}: expected one result per policy, got two of ${policy}`);
    names.add(policy);
  }
  return found;
}

async function sourcesAt(path: string): Promise<string[]> {
  if (!statSync(path).isDirectory() || (await isTrace(path))) return [path];
  const sources: string[] = [];
  for (const name of readdirSync(path).sort()) {
    const place = join(path, name);
    if (extname(name) === ".json" || (statSync(place).isDirectory() && (await isTrace(place)))) sources.push(place);
  }
  return sources;
}

/** A trace that was named itself is of the profile that was in force in it, one in a folder of several of its name. */
async function figuresAt(path: string, alone: boolean, side: Side): Promise<PolicyFigures[]> {
  const name = basename(path, extname(path));
  if (await isTrace(path)) {
    const { run, notes } = await readRecordedTrace(path);
    const left = Object.entries(run.left).map(([reason, count]) => `${count} requests left out: ${reason}`);
    for (const note of [...left, ...notes]) process.stderr.write(`note: ${path}: ${note}\n`);
    if (side === "simulated")
      process.stderr.write(`note: ${path} is a recorded trace, so these gaps are between two live runs\n`);
    return [figuresOfRun(run, alone ? run.header.router.defaultProfile : basename(path))];
  }
  const figures = figuresInResults(jsonAt(path), name);
  if (figures === undefined) throw new CommandFailure(`${path}: expected ${RESULT_FORMATS}, got JSON of another shape`);
  return figures;
}

function jsonAt(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new CommandFailure(`${path}: expected JSON, ${error instanceof Error ? error.message : String(error)}`);
  }
}
