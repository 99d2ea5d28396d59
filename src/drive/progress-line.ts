import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { DriveControl, Progress } from "./drive.ts";

const TTY_MILLIS = 500;
const LOG_MILLIS = 10_000;

/** Where progress is shown. */
export interface ProgressStream {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** Shows how far a run is: one line rewritten on a terminal, a line every ten seconds elsewhere. Returns its end. */
export function showProgress(control: DriveControl, stream: ProgressStream): () => void {
  const rewrite = stream.isTTY === true;
  const timer = setInterval(
    () => {
      const line = progressLine(control.progress());
      stream.write(rewrite ? `\r\u001B[K${line}` : `${line}\n`);
    },
    rewrite ? TTY_MILLIS : LOG_MILLIS,
  );
  timer.unref();
  return () => {
    clearInterval(timer);
    if (rewrite) stream.write("\r\u001B[K");
  };
}

function progressLine({ elapsedMicros, sent, ended, inFlight, failed }: Progress): string {
  const seconds = elapsedMicros / MICROS_PER_SECOND;
  const rate = seconds > 0 ? ended / seconds : 0;
  const time = `${seconds.toFixed(0)} s`;
  return `${time}: ${sent} sent, ${ended} ended (${rate.toFixed(1)}/s), ${inFlight} in flight, ${failed} failed`;
}
