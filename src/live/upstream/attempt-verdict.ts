import { FAULT_OF_TROUBLE, type Trouble, type WaitVerdict, waitVerdict } from "#core/retry/wait-verdict.ts";
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
}

/** What is to be done with the attempt of a request that is under way. */
export function attemptVerdict(
  exchange: Exchange,
  { at, sentAt, quietMicros, trouble, continues, hedging }: FoundAttempt,
): WaitVerdict {
  const { arrivedAt, deadlineAt, context, routeId, state, stream: streams, writer, waits, kept } = exchange;
  const begun = state.kind === "passing";
  const resuming = state.kind === "resuming";
  const held = resuming || (state.kind === "holding" && state.carriage !== "stream");
  const { blocked } = writer;
  const lateMicros = hedging?.mayBegin === true ? at - sentAt : 0;
  return waitVerdict(
    { at, arrivedAt, deadlineAt, quietMicros, begun, continues, held, streams, blocked, trouble, lateMicros },
    waits,
    () => {
      if (hedging?.underWay === true) return "free";
      const goesOn = resuming || begun;
      const times = goesOn ? (kept?.continuations ?? 0) : state.attempts;
      const fault = FAULT_OF_TROUBLE[trouble?.kind ?? "hung"];
      return context.seat.takerOf({ requestId: routeId, fault, times, continues: goesOn });
    },
  );
}

/** An attempt waits, or its answer is on the way. */
export function isUnderWay({ kind }: PathState): boolean {
  return kind === "prefilling" || kind === "waiting" || kind === "holding" || kind === "passing" || kind === "resuming";
}
