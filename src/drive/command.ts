import { closeSync, openSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { ImportError } from "#trace/import/import-report.ts";
import { drive, DriveError, type DriveControl } from "./drive.ts";
import { addDriveFlags, driveOptions, type DriveFlags } from "./flags.ts";
import type { DriveOptions } from "./options.ts";
import { writeOutputs } from "./output-file.ts";
import { showProgress } from "./progress-line.ts";
import { reportTable } from "./report-table.ts";
import type { DriveReport } from "./report.ts";

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;
const EXIT_INTERRUPTED = 130;
/** Within this time an interrupt is the one before, forwarded by a parent such as npm, which a terminal interrupts too. */
const SAME_INTERRUPT_MILLIS = 500;

/**
 * `gnomon drive`. Its action ends normally when no request failed unexpectedly; else it throws a CommanderError with
 * the exit code: 1 for failed requests, 2 for what cannot be driven, 130 after an interrupt.
 */
export function driveCommand(): Command {
  const command = new Command("drive").description("Send a recorded or synthetic workload and measure the answers.");
  return addDriveFlags(command).action(async (flags: DriveFlags) => {
    const options = driveOptions(flags, process.env);
    if (typeof options === "string") throw new CommanderError(EXIT_USAGE, "gnomon.driveUsage", options);
    refuseUnwritable("--json", flags.json);
    refuseUnwritable("--output", flags.output);
    refuseUnwritable("--requests-out", flags.requestsOut);
    const report = await driven(options);
    const isAnswered = flags.json === "-" || flags.output === "-";
    (isAnswered ? process.stderr : process.stdout).write(reportTable(report));
    writeOutputs(flags, `${JSON.stringify(report, null, 2)}\n`);
    if (report.interrupted) throw new CommanderError(EXIT_INTERRUPTED, "gnomon.driveInterrupted", "interrupted");
    const { failed } = report.requests;
    if (failed > 0) throw new CommanderError(EXIT_FAILED, "gnomon.driveFailed", `${failed} requests failed`);
  });
}

/**
 * Runs with a progress line; the first interrupt stops sending, the second closes what is in flight. Before anything was
 * sent, one ends the process as usual.
 */
async function driven(options: DriveOptions): Promise<DriveReport> {
  let control: DriveControl | undefined;
  let endProgress = (): void => {};
  let firstMillis: number | undefined;
  const onInterrupt = () => {
    const nowMillis = performance.now();
    if (firstMillis === undefined) {
      firstMillis = nowMillis;
      control?.stop();
      process.stderr.write("\nstopping; interrupt again to close what is in flight\n");
    } else if (nowMillis - firstMillis >= SAME_INTERRUPT_MILLIS) {
      control?.cancel();
      process.stderr.write("\nclosing\n");
    }
  };
  try {
    return await drive(options, (started) => {
      control = started;
      process.on("SIGINT", onInterrupt);
      endProgress = showProgress(started, process.stderr);
    });
  } catch (error) {
    if (error instanceof ImportError || error instanceof DriveError)
      throw new CommanderError(EXIT_USAGE, "gnomon.driveInput", error.message);
    throw error;
  } finally {
    endProgress();
    process.off("SIGINT", onInterrupt);
  }
}

/** A file that cannot be written is reported before the run, not after it. */
function refuseUnwritable(flag: string, file: string | undefined): void {
  if (file === undefined || file === "-") return;
  try {
    closeSync(openSync(file, "a"));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommanderError(EXIT_USAGE, "gnomon.driveUsage", `${flag}: ${reason}`);
  }
}
