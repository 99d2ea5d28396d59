import { existsSync } from "node:fs";
import { Command } from "commander";
import type { Decision } from "#core/input/decision.ts";
import { ConfigError } from "#config/config-error.ts";
import { decisionView } from "#live/status/status-view.ts";
import { type DecisionDifference, Replay, type ReplayResult } from "#shadow/recorded/replay.ts";
import { TraceReader, type TraceReport } from "#trace/reader.ts";
import type { RecordedDecision } from "#trace/codec/record.ts";
import { decisionTable } from "./explain/decision-table.ts";
import { reportNotes } from "./trace/report-notes.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";

/** Decides a recorded trace again and compares. */
export function replayCommand(): Command {
  return new Command("replay")
    .description("Feed a recorded trace to a fresh router and compare every decision, bit for bit.")
    .argument("<trace>", "folder that --record wrote, or one of its segments")
    .option("--strict", "refuse a trace that is damaged or incomplete", false)
    .option("--allow-gaps", "end with 0 though parts of the trace are missing or damaged and cannot be compared", false)
    .option("--json", "print JSON", false)
    .action(async (trace: string, { strict, allowGaps, json }: ReplayFlags) => {
      if (!existsSync(trace)) throw new ConfigError([`replay: expected a trace, got ${trace}, which is not there`]);
      const reader = new TraceReader(trace, { strict });
      const replay = new Replay();
      try {
        for await (const item of reader.items()) replay.take(item);
      } catch (error) {
        throw new CommandFailure(error instanceof Error ? error.message : String(error));
      }
      const result = replay.result();
      const { first, ...counts } = result;
      const complete = isComplete(result, reader.report);
      if (json)
        process.stdout.write(
          `${JSON.stringify({ complete, ...counts, first: firstView(first), trace: reader.report })}\n`,
        );
      else process.stdout.write(words(result, reader.report));
      if (strict && result.breaks > 0)
        throw new CommandFailure(`${trace}: ${result.reasons[0] ?? "records are missing or moved"}`);
      if (result.differences > 0) throw new CommandFailure(`${result.differences} decisions differ`);
      if (result.decisions === 0) throw new CommandFailure(`${trace} has no decision that can be compared`);
      if (!complete && !allowGaps)
        throw new CommandFailure(`${trace}: not all of it was compared; --allow-gaps ends with 0 all the same`);
    });
}

interface ReplayFlags {
  readonly strict: boolean;
  readonly allowGaps: boolean;
  readonly json: boolean;
}

/** Whether nothing shows that a decision was left out of the comparison. A run without an end may still be recorded. */
function isComplete({ unverifiable, breaks, reasons }: ReplayResult, report: TraceReport): boolean {
  const { dropped, segmentsMissing, skipped } = report;
  return unverifiable + breaks + reasons.length + dropped + segmentsMissing + Object.keys(skipped).length === 0;
}

function words(result: ReplayResult, report: TraceReport): string {
  const { runs, inputs, decisions, unverifiable, reasons, first } = result;
  const compared = `${runs} ${runs === 1 ? "run" : "runs"}, ${inputs} inputs, ${decisions} decisions compared`;
  const lines = [compared + verdict(result, report)];
  if (result.observedRouters.length > 0) lines.push(observedLine(result));
  if (unverifiable > 0) lines.push(`${unverifiable} decisions not compared, from these places on:`);
  else if (reasons.length > 0) lines.push("beyond these, nothing could be compared:");
  lines.push(...reasons.map((reason) => `  ${reason}`), ...reportNotes(report));
  if (first !== undefined) {
    lines.push("", `first difference, record ${first.record}: ${first.what}`);
    lines.push("recorded:", side(first.recorded), "replayed:", side(first.replayed));
  }
  return `${lines.join("\n")}\n`;
}

/** Where requests went was not for this project's router to say. */
function observedLine({ observed, observedRouters }: ReplayResult): string {
  const by = observedRouters.join(", ");
  return `${observed} requests went where ${by} sent them: those decisions are ${by}'s, and what was compared is what gnomon knew beside it`;
}

function verdict(result: ReplayResult, report: TraceReport): string {
  const { decisions, differences, unverifiable } = result;
  const isWhole = isComplete(result, report);
  const left = unverifiable > 0 ? `${unverifiable} NOT compared` : "the rest NOT compared";
  const gaps = isWhole ? "" : `${decisions > 0 ? "; " : ", "}the trace is damaged or incomplete: ${left}`;
  if (differences > 0) return `: ${differences} differ${gaps}`;
  if (decisions === 0) return gaps;
  if (!isWhole) return `, and these identical${gaps}`;
  return report.unended > 0 ? ": all identical up to where the trace stops, without an end" : ": all identical";
}

function side(decision: Decision | RecordedDecision | undefined): string {
  return decision === undefined ? "no decision" : decisionTable(viewOf(decision), "decision");
}

function firstView(first: DecisionDifference | undefined) {
  if (first === undefined) return null;
  const { record, what, recorded, replayed } = first;
  return { record, what, recorded: recorded && viewOf(recorded), replayed: replayed && viewOf(replayed) };
}

function viewOf(decision: Decision | RecordedDecision) {
  return decisionView({ decision, model: undefined, promptTokens: undefined, decisionMicros: 0, came: {} });
}
