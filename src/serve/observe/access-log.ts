import { destination } from "pino";
import { accessLine } from "#live/log/access-line.ts";
import type { RequestSummary } from "#live/log/request-summary.ts";
import type { Config } from "#config/schema.ts";

/** One line per inference request. */
export interface AccessLog {
  write(summary: RequestSummary): void;
  /** Lines that did not fit the buffer. */
  dropped(): number;
  close(): void;
}

const STDOUT = 1;
/** Lines that wait for a slow reader; beyond it whole lines are dropped and counted. */
const BUFFER_BYTES_MAX = 16 * 1024 * 1024;

/** Undefined where the configuration has none. Lines are written beside the event loop and never hold a request up. */
export function openAccessLog({ access }: Config["log"], fd = STDOUT): AccessLog | undefined {
  if (access === "off") return undefined;
  let dropped = 0;
  let open = true;
  const lines = destination({ fd, sync: false, minLength: 0, maxLength: BUFFER_BYTES_MAX });
  lines.on("drop", () => dropped++);
  // A reader that is gone must not end the gateway.
  lines.on("error", () => {
    open = false;
  });
  return {
    write(summary) {
      if (open) lines.write(accessLine(summary));
      else dropped++;
    },
    dropped: () => dropped,
    close() {
      if (!open) return;
      open = false;
      try {
        lines.flushSync();
      } catch {
        // Nobody reads it any more.
      }
    },
  };
}
