import type { Micros } from "../base/units.ts";
import { isBetween } from "./path-state.ts";
import type { RequestPath } from "./request-path.ts";
import { type TakerKind, type Trouble, type WaitLimits, type WaitVerdict, waitVerdict } from "./wait-verdict.ts";

/** An attempt under way as its host finds it now and then. */
export interface FoundAttempt {
  readonly at: Micros;
  /** As of Waiting. */
  readonly arrivedAt: Micros;
  readonly deadlineAt: Micros;
  readonly quietMicros: Micros;
  readonly streams: boolean;
  readonly blocked: boolean;
  readonly trouble: Trouble | undefined;
  /** When the attempt was sent. */
  readonly sentAt: Micros;
  /** The answer could go on elsewhere. */
  readonly continues: boolean;
}

/** What is to be done with the attempt of a request that is under way. */
export function look(path: RequestPath, found: FoundAttempt, limits: WaitLimits): WaitVerdict {
  const { state, host } = path;
  const { stages } = host;
  const { at, streams } = found;
  const begun = state.kind === "passing";
  const resuming = state.kind === "resuming";
  const goesOn = begun || resuming;
  const onward = goesOn ? stages.find((stage) => stage.times !== undefined) : undefined;
  const times = goesOn ? (onward?.times ?? 0) : path.attempts;
  const timesMax = goesOn ? (onward?.timesMax ?? Infinity) : undefined;
  const isBound = stages.some(({ binds }) => binds === true);
  const hasSecond = stages.some(({ standsBy }) => standsBy === true);
  const movedTimes = streams && !isBound && !hasSecond ? timesMoved(path, times) : 0;
  const held = state.kind === "holding" && state.carriage !== "stream";
  const isLate = !isBound && stages.some((stage) => at - found.sentAt > (stage.helpsAfter?.(state) ?? Infinity));
  return waitVerdict({ ...found, begun, resuming, held, movedTimes, isLate }, limits, (kind: TakerKind) =>
    hasSecond ? "free" : host.router.takerOf(host.routeId, kind, { times, timesMax }),
  );
}

/**
 * Whether a limit of time ends a request between two attempts, while a stage puts the next one off: with no endpoint there is
 * nothing else to look at.
 */
export function isOverdue(
  { state }: RequestPath,
  { at, arrivedAt, deadlineAt, streams }: Pick<FoundAttempt, "at" | "arrivedAt" | "deadlineAt" | "streams">,
  limits: WaitLimits,
): boolean {
  if (!isBetween(state)) return false;
  const hasNothing = streams && state.kind === "failed";
  const longest = hasNothing ? Math.min(limits.totalMicrosMax, limits.firstByteMicrosMax) : limits.totalMicrosMax;
  return at > Math.min(deadlineAt, arrivedAt + longest);
}

/** How often faults moved a request that has no token where it is. */
function timesMoved({ state }: RequestPath, times: number): number {
  if (state.kind === "resuming") return state.content === "silent" ? times : 0;
  const isSilent = state.kind === "waiting" || (state.kind === "holding" && state.content === "silent");
  return isSilent ? times - 1 : 0;
}
