import { type TakerKind, type Trouble, type WaitVerdict, waitVerdict } from "#core/retry/wait-verdict.ts";
import type { Micros } from "#core/units.ts";
import type { Exchange } from "../request/exchange.ts";
import type { Hedging } from "./hedging.ts";
import type { PathState } from "#core/path/path-state.ts";

/** An attempt as a sweep finds it. */
export interface FoundAttempt {
  readonly at: Micros;
  readonly sentAt: Micros;
  readonly quietMicros: Micros;
  readonly trouble: Trouble | undefined;
  /** The answer could go on elsewhere. */
  readonly continues: boolean;
  /** Undefined where no second endpoint is asked. */
  readonly hedging: Hedging | undefined;
  /** One endpoint computes the prompt, another one answers. */
  readonly isStaged: boolean;
}

/** What is to be done with the attempt of a request that is under way. */
export function attemptVerdict(
  exchange: Exchange,
  { at, sentAt, quietMicros, trouble, continues, hedging, isStaged }: FoundAttempt,
): WaitVerdict {
  const { arrivedAt, deadlineAt, context, routeId, state, stream: streams, writer, waits, kept } = exchange;
  const begun = state.kind === "passing";
  const resuming = state.kind === "resuming";
  const held = state.kind === "holding" && state.carriage !== "stream";
  const { blocked } = writer;
  const lateMicros = hedging?.mayBegin === true ? at - sentAt : 0;
  const goesOn = resuming || begun;
  const times = goesOn ? (kept?.continuations ?? 0) : state.attempts;
  const movedTimes = isStaged || hedging?.underWay === true ? 0 : timesMoved(exchange, times);
  const waiting = { at, arrivedAt, deadlineAt, quietMicros, begun, continues, held, streams, blocked, trouble };
  return waitVerdict({ ...waiting, resuming, movedTimes, lateMicros }, waits, (kind: TakerKind) => {
    if (hedging?.underWay === true) return "free";
    return context.seat.takerOf({ requestId: routeId, kind, times, continues: goesOn });
  });
}

/** How often faults moved a request that streams and has no token here. */
function timesMoved({ state, stream, cascade }: Exchange, times: number): number {
  if (state.kind === "resuming") return state.content === "silent" ? times : 0;
  const isSilent = state.kind === "waiting" || (state.kind === "holding" && state.content === "silent");
  return isSilent && stream && cascade === undefined ? times - 1 : 0;
}

/** An attempt waits, or its answer is on the way. */
export function isUnderWay({ kind }: PathState): boolean {
  return kind === "prefilling" || kind === "waiting" || kind === "holding" || kind === "passing" || kind === "resuming";
}
