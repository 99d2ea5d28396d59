import { DecisionRing } from "#live/status/shown-decisions.ts";
import { decisionView } from "#live/status/status-view.ts";
import { ConfigError } from "#config/config-error.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";
import { TraceReader } from "#trace/reader.ts";
import { isTrace } from "#trace/segment-name.ts";
import { isAskedBy } from "../flag/asked-request.ts";

type View = ReturnType<typeof decisionView>;

/** Decisions of one request, its retries included. */
const DECISIONS_MAX = 64;

/**
 * Decisions of a trace as /gnomon/decisions gives them, oldest first: all of one request, or the last one of all. Throws
 * ConfigError where there is none.
 */
export async function tracedViews(path: string, requestId: string | undefined): Promise<View[]> {
  if (!(await isTrace(path))) throw new ConfigError([`explain: --trace: expected a recorded trace, got ${path}`]);
  const count = requestId === undefined ? 1 : DECISIONS_MAX;
  const isAsked = requestId === undefined ? undefined : isAskedBy(requestId);
  const found: View[] = [];
  let ring = new DecisionRing(count);
  let startWallMicros = 0;
  const endRun = (): void => {
    found.push(
      ...ring
        .last(count)
        .map((kept) => decisionView(kept, startWallMicros))
        .toReversed(),
    );
  };
  try {
    for await (const item of new TraceReader(path).items()) {
      if (item.kind === "run") {
        endRun();
        ring = new DecisionRing(count);
        startWallMicros = item.header.startWallMicros;
      } else if (item.kind === "record") {
        const { input, decision } = item;
        ring.accepted(input, decision, 0, isAsked === undefined || (decision && isAsked(decision.requestId)));
      }
    }
  } catch (error) {
    throw new CommandFailure(error instanceof Error ? error.message : String(error));
  }
  endRun();
  const views = found.slice(-count);
  if (views.length > 0) return views;
  const what = requestId === undefined ? "a decision" : `a decision on request ${requestId}`;
  throw new ConfigError([`explain: expected ${what} in ${path}, got none`]);
}
