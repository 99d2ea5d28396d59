import type { Config } from "#config/schema.ts";
import type { FaultLog } from "#live/log/fault-log.ts";
import type { RunHeader } from "#live/recorder/run-lines.ts";
import { Recorder } from "#live/recorder/recorder.ts";
import { refusedBySystem } from "../process/system-error.ts";
import type { Intake } from "#live/base/intake.ts";
import { part } from "../assembly/part.ts";
import type { GatewayContext } from "../plan/gateway-context.ts";

const RETRIES =
  "records are dropped and counted; the disk is tried again after pauses of 1 s to 60 s; requests are not affected";
const GOES_ON = "a new segment was begun; a gap line before its first record states how many are missing";

/** The recorder of a running gateway; undefined where the configuration has none. */
async function openRecorder(
  { directory, ...options }: Config["record"],
  run: RunHeader,
  { report }: FaultLog,
): Promise<Recorder | undefined> {
  if (directory === undefined) return undefined;
  try {
    return await Recorder.open({
      ...options,
      directory,
      run,
      onFailure: (detail) => report({ kind: "recorder-failed", detail, done: RETRIES }),
      onRecovery: ({ records, millis }) => {
        const detail = `${records} records were lost in ${millis} ms`;
        report({ kind: "recorder-recovered", detail, done: GOES_ON });
      },
    });
  } catch (error) {
    throw refusedBySystem(`record.directory ${directory}`, error);
  }
}

interface Needed extends Pick<GatewayContext, "plan"> {
  readonly run: RunHeader;
  readonly intake: Intake;
  readonly logs: { readonly faults: FaultLog };
}

export const recorderPart = part({
  name: "recorder",
  needs: ["plan", "run", "intake", "logs"],
  start: async ({ plan, run, intake, logs }: Needed) => {
    const recorder = await openRecorder(plan.config.record, run, logs.faults);
    if (recorder !== undefined) intake.listen(recorder);
    return recorder;
  },
  stop: (recorder) => recorder?.close(),
});
