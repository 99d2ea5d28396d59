import type { Fault } from "../endpoint/fault.ts";
import type { RetryDenial } from "./retry-policy.ts";
import type { Micros } from "../base/units.ts";

/** How long a request is waited for. */
export interface WaitLimits {
  /** From the arrival to the last byte. */
  readonly totalMicrosMax: Micros;
  /** From the arrival to the first byte, for requests that stream. */
  readonly firstByteMicrosMax: Micros;
  /** Between two pieces of an answer. */
  readonly idleMicrosMax: Micros;
  /** At a lost endpoint without a byte, where no other may take the request. */
  readonly lostMicrosMax: Micros;
  /**
   * Silence of an answer that began, at an endpoint that is lost or hangs, where it cannot go on elsewhere and another
   * endpoint would answer the same request anew.
   */
  readonly cutMicrosMax: Micros;
  /** The same where the answer goes on at another endpoint. */
  readonly continueMicrosMax: Micros;
  /**
   * Without a token at a busy endpoint to which a fault elsewhere moved a request, while another one stands idle, until it
   * moves again; twice as long each time.
   */
  readonly moveAgainMicros: Micros;
  /** A client that does not read. */
  readonly writeStallMicrosMax: Micros;
}

/**
 * lost: nobody accepts a connection there. hung: it was judged to hang. evicted: it is drained, and its time is over.
 * asleep: its engine sleeps, and lets wait what came too late for it. draining: it turned a request down as it leaves.
 */
export type TroubleKind = "lost" | "hung" | "evicted" | "asleep" | "draining";

/** What an attempt fails by where its endpoint is left. */
export const FAULT_OF_TROUBLE: Readonly<Record<TroubleKind, Fault>> = {
  lost: "connect",
  hung: "hung",
  evicted: "draining",
  asleep: "asleep",
  draining: "draining",
};

/** Why an endpoint is to be left, and since when that is known. */
export interface Trouble {
  readonly kind: TroubleKind;
  readonly since: Micros;
}

/**
 * Who else could serve a request. nobody: no other endpoint that is well may. barred: one may, and the request may not
 * go there, for its attempts or the budget are used up. free: one may, and gets it if it is asked.
 */
export type Taker = "nobody" | "barred" | "free";

/** Who is asked for: whoever may serve, or only one that stands idle. */
export type TakerKind = "any" | "idle";

/** `denied`: why the policy lets it go nowhere else; undefined where it does. */
export function takerOf(denied: RetryDenial | undefined, hasTaker: () => boolean): Taker {
  if (!hasTaker()) return "nobody";
  return denied === undefined ? "free" : "barred";
}

/** One attempt as its host finds it. */
export interface QuietAttempt {
  readonly at: Micros;
  /** When its client has no use for the answer any more; Infinity where it stated nothing. */
  readonly deadlineAt: Micros;
  /** When the request arrived, and since when nothing of its answer came. */
  readonly arrivedAt: Micros;
  readonly quietMicros: Micros;
  /** The client has part of the answer. */
  readonly begun: boolean;
  /** The answer began and could go on at another endpoint. */
  readonly continues: boolean;
  /** The client has part of the answer, which is to go on here, and nothing of that came. */
  readonly resuming: boolean;
  /** How often faults moved the request until it was sent here; 0 once a token came. */
  readonly movedTimes: number;
  /** An answer that comes in one piece is on its way. */
  readonly held: boolean;
  readonly streams: boolean;
  /** The client does not read. */
  readonly blocked: boolean;
  readonly trouble: Trouble | undefined;
  /** It has no token, and a stage would do something about that by now. */
  readonly isLate: boolean;
}

/**
 * - wait: nothing is to be done
 * - move: to another endpoint, which there is; the client has seen nothing of this one's answer
 * - give-up: there is none, and this one is lost
 * - cut: an answer that began goes on at another endpoint, or ends here where its client does better to ask again
 * - time-out: a limit is reached
 * - stalled: by a client that does not read
 * - help: a stage does something beside this attempt
 */
export type WaitVerdict = "help" | "wait" | "move" | "give-up" | "cut" | "time-out" | "stalled";

/**
 * What is to be done with an attempt that waits. An endpoint that is lost or hangs is left for one that may serve the
 * request (`taker`, asked only then): a process that hangs as it ends, or a machine that vanished, keeps its connections
 * open. Where there is none, an answer is waited for as long as its client waits, since the endpoint may go on: a pause
 * is no loss. One that is drained or sleeps is left by what can go on elsewhere. What a fault brought to an endpoint that
 * is busy with what it brought moves on to one that is idle: to the endpoints that come back.
 */
export function waitVerdict(waiting: QuietAttempt, limits: WaitLimits, taker: (kind: TakerKind) => Taker): WaitVerdict {
  const { at, arrivedAt, quietMicros, begun, continues, held, streams, blocked, trouble } = waiting;
  const waited = at - arrivedAt;
  if (waited > limits.totalMicrosMax || at > waiting.deadlineAt) return "time-out";
  if (trouble?.kind === "evicted" || trouble?.kind === "asleep" || trouble?.kind === "draining") {
    // It is well: what cannot go on elsewhere ends where it is, or once it is woken. A draining one ends what it makes.
    const isLeft = trouble.kind !== "draining" || quietMicros > limits.continueMicrosMax;
    if (isLeft && (!begun || continues) && taker("any") === "free") return begun ? "cut" : "move";
  } else if (trouble !== undefined && begun) {
    if (!blocked && isBetterElsewhere(waiting, limits, taker)) return "cut";
  } else if (trouble !== undefined) {
    if (taker("any") === "free") return "move";
    if (trouble.kind === "lost" && at - trouble.since > limits.lostMicrosMax) return "give-up";
  }
  if (blocked) return quietMicros > limits.writeStallMicrosMax ? "stalled" : "wait";
  if (begun || held) {
    if (quietMicros <= limits.idleMicrosMax) return "wait";
    return begun && continues && taker("any") === "free" ? "cut" : "time-out";
  }
  if (trouble === undefined && isDueToMove(waiting, limits) && taker("idle") === "free") return "move";
  if (waiting.resuming) return quietMicros > limits.firstByteMicrosMax ? "time-out" : "wait";
  if (streams && waited > limits.firstByteMicrosMax) return "time-out";
  return trouble === undefined && waiting.isLate ? "help" : "wait";
}

/** An answer that began, at an endpoint that is lost or hangs. */
function isBetterElsewhere(
  { quietMicros, continues }: QuietAttempt,
  limits: WaitLimits,
  taker: (kind: TakerKind) => Taker,
): boolean {
  const goesOn = continues && quietMicros > limits.continueMicrosMax;
  const endsHere = quietMicros > limits.cutMicrosMax;
  if (!goesOn && !endsHere) return false;
  const found = taker("any");
  return (goesOn && found === "free") || (endsHere && found !== "nobody");
}

function isDueToMove({ movedTimes, quietMicros }: QuietAttempt, { moveAgainMicros }: WaitLimits): boolean {
  return movedTimes > 0 && quietMicros > moveAgainMicros * 2 ** (movedTimes - 1);
}

/** What an attempt fails by that is left by such a verdict. */
export function faultOfLeaving(verdict: WaitVerdict, trouble: Trouble | undefined): Fault {
  if (trouble !== undefined) return FAULT_OF_TROUBLE[trouble.kind];
  return verdict === "move" ? "saturated" : "hung";
}

/** The trouble of one attempt's endpoint, as it is found now; since when it is known stays while it is the same. */
export function troubleSince(
  before: Trouble | undefined,
  kind: TroubleKind | undefined,
  at: Micros,
): Trouble | undefined {
  return kind === undefined || before?.kind === kind ? kind && before : { kind, since: at };
}
