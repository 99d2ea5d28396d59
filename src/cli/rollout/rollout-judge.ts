import { Command } from "commander";
import { addJson, addOutput } from "#drive/output-option.ts";
import { ConfigError } from "#config/config-error.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";
import { armSessions } from "#shadow/rollout/arm-sessions.ts";
import { type JudgedRollout, judgedRollout, recordedControl } from "#shadow/rollout/judged-rollout.ts";
import { TIME_METRICS } from "#core/rollout/judge/outcome.ts";
import type { Difference } from "#core/rollout/judge/verdict.ts";
import type { Distribution } from "#sim/result/distribution.ts";
import { TraceReader } from "#trace/reader.ts";
import { isTrace } from "#trace/segment-name.ts";
import { checkOutputFile } from "../output/check-output-file.ts";
import { brokenName, figureTable, millisOf, percentOf, signedMillis, wrapped } from "../output/figure-text.ts";
import type { TrafficFlags } from "../what-if/what-if-flags.ts";
import { anyTrafficOf, notesOf } from "../what-if/what-if-traffic.ts";
import { addTrafficFlags } from "./traffic-flags.ts";
import { writeOutputs } from "#drive/output-file.ts";

interface JudgeFlags extends TrafficFlags {
  readonly rollout?: string;
  readonly json?: string;
  readonly output?: string;
}

/** Judges a recorded rollout once more, with the simulator's predictions, which narrow its intervals. */
export function rolloutJudgeCommand(): Command {
  const command = new Command("judge")
    .description("Judge a recorded rollout again, adjusted by what the simulator predicts of its requests.")
    .argument("<trace>", "folder that --record wrote while the rollout ran")
    .option("--rollout <name>", "which one (default: the last)");
  addOutput(command, "write the verdict there as JSON");
  addJson(command, "print the verdict as JSON, in place of the table");
  return addTrafficFlags(command).action(judge);
}

async function judge(path: string, flags: JudgeFlags): Promise<void> {
  if (!(await isTrace(path))) throw new ConfigError([`rollout judge: expected a recorded trace, got ${path}`]);
  checkOutputFile("--json", flags.json);
  checkOutputFile("--output", flags.output);
  const items = () => new TraceReader(path).items();
  const recorded = await recordedControl(items(), flags.rollout);
  if (typeof recorded === "string") throw new CommandFailure(`${path}: --rollout: ${recorded}`);
  // A gateway that has just started again recorded what was measured before, and maybe no request.
  const traffic = await anyTrafficOf(path, flags);
  for (const line of notesOf(traffic)) process.stderr.write(`note: ${line}\n`);
  if (traffic.setting.workload.length === 0)
    process.stderr.write("note: no request since the last start can be simulated: it is judged as it was measured\n");
  const judged = await judgedRollout(recorded, traffic.setting, traffic.requestIds ?? [], items());
  const sessions = await armSessions(items(), recorded.rollout);
  const { arms, ...rest } = judged;
  const named = arms.map(({ name, profile }) => ({ name, profile, sessions: sessions.get(name) }));
  writeOutputs(flags, `${JSON.stringify({ ...rest, arms: named })}\n`);
  if (flags.json !== "-" && flags.output !== "-") process.stdout.write(judgeTable(judged, sessions));
}

type ArmSessions = ReadonlyMap<string, Distribution>;

function judgeTable(judged: JudgedRollout, sessions: ArmSessions): string {
  const { name, arms, phase, level, differences } = judged;
  const table = figureTable(["arm", "", "measured", "adjusted", "variance left"], [18, 12, 26, 26, 12]);
  for (const { measured, adjusted } of differences) {
    if (!Number.isFinite(measured.mean)) continue;
    const { metric, figure, arm } = measured;
    const first = metric === TIME_METRICS[0] && figure === "mean";
    table.push([
      first ? brokenName(arms[arm]!.name, 18) : "",
      `${metric.toUpperCase()} ${figure}`,
      differenceText(measured),
      differenceText(adjusted),
      percentOf(adjusted.varianceLeft),
    ]);
  }
  const requests = arms.map((arm) => `${arm.name} (${arm.profile}) ${arm.tally.counts.requests}`).join(", ");
  return [
    wrapped(verdict(judged)),
    "",
    wrapped(
      `Rollout ${name}, ${phase}; requests: ${requests}. Each arm less the control, milliseconds, with intervals that ` +
        `are valid at any time of looking with ${percentOf(1 - level)}; adjusted by what the simulator predicts if the control had routed all:`,
    ),
    table.toString(),
    ...sessionLines(judged, sessions),
    "",
  ].join("\n");
}

/** How long the whole of a session took in each arm. */
function sessionLines({ arms }: JudgedRollout, sessions: ArmSessions): string[] {
  const parts = arms.flatMap(({ name }) => {
    const of = sessions.get(name);
    return of === undefined
      ? []
      : [`${name} ${millisOf(of.mean)} ms on average, p99 ${millisOf(of.p99)} ms, of ${of.count} sessions`];
  });
  if (parts.length === 0) return [];
  return [
    wrapped(`From a session's first request to its last answer, where one arm had all of it: ${parts.join("; ")}.`),
  ];
}

/** One sentence for the mean E2E of each arm. */
function verdict({ arms, differences }: JudgedRollout): string {
  const found = differences.filter(({ measured }) => measured.metric === "e2e" && measured.figure === "mean");
  const sentences = found.map(({ measured, adjusted }) => {
    const { low, high, mean, arm } = adjusted;
    const who = `${arms[arm]!.name} (${arms[arm]!.profile})`;
    if (!Number.isFinite(mean)) return `${who} has nothing to compare.`;
    const size = `${signedMillis(mean)} ms of mean E2E`;
    const sure = low > 0 || high < 0 ? `differs from ${arms[0]!.name} by ${size}` : `is not found to differ (${size})`;
    const before = measured.low > 0 || measured.high < 0 ? "as measured too" : "which is not sure as measured";
    return low > 0 || high < 0 ? `${who} ${sure}, ${before}.` : `${who} ${sure}.`;
  });
  return sentences.join(" ");
}

function differenceText({ mean, low, high }: Difference): string {
  if (!Number.isFinite(low)) return `${signedMillis(mean)}\n[too few]`;
  return `${signedMillis(mean)}\n[${signedMillis(low)}, ${signedMillis(high)}]`;
}
