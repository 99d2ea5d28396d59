import type { Fault } from "../endpoint/fault.ts";
import type { Outcome } from "../endpoint/outcome.ts";
import type { AskResume, AskRetry, ErrorEffect, FaultReport, PathEffect, ReportContinued } from "./path-effect.ts";
import type {
  AnswerBegan,
  AnswerEnded,
  AttemptFailed,
  EventKind,
  Marked,
  Refused,
  Replaced,
  PathEvent,
  UpstreamBroke,
  WholeOutcome,
} from "./path-event.ts";
import type { Ahead, Failed, Holding, Passing, PathState, Resuming, Severed, Waiting } from "./path-state.ts";

/** What an event does to a request: its next state, and what is to be done, in order. */
export interface PathStep {
  readonly state: PathState;
  readonly effects: readonly PathEffect[];
}

/**
 * What an event does to a request. An event without a meaning in a state changes nothing: one that may come late is
 * passed over, any other is reported as a defect.
 */
export function transition(state: PathState, event: PathEvent): PathStep {
  const row = TABLE[state.kind] as Readonly<
    Record<string, ((state: PathState, event: PathEvent) => PathStep) | undefined>
  >;
  return row[event.kind]?.(state, event) ?? illegal(state, event);
}

export type StateKind = PathState["kind"];
type StateOf<S extends StateKind> = Extract<PathState, { kind: S }>;
/** The event of a kind; those without more than their name share a type. */
type EventOf<E extends EventKind> = PathEvent extends infer One
  ? One extends { kind: infer K }
    ? E extends K
      ? One
      : never
    : never
  : never;
/** What the events that have a meaning in a state do. */
export type Row<S extends StateKind> = {
  readonly [E in EventKind]?: (state: StateOf<S>, event: EventOf<E>) => PathStep;
};

type State = PathState;

/** An effect without more than its name; those below are made once. */
const plain = <K extends PathEffect["kind"]>(kind: K): { readonly kind: K } => ({ kind });
const SEND = plain("send");
const RELEASE = plain("release-attempt");
const REPORT_AHEAD = plain("report-ahead");
const REPORT_FIRST_TOKEN = plain("report-first-token");
const WRITE_HELD = plain("write-held");
const END_CLIENT = plain("end-client");
const DESTROY_CLIENT = plain("destroy-client");
const WRITE_REFUSAL = plain("write-refusal");
const REPORT_CLIENT_LEFT = plain("report-client-left");
const FORGET = plain("forget");
const REPORT_TIMEOUT = plain("report-timeout");

type Faulty = ErrorEffect | FaultReport | AskRetry | AskResume | ReportContinued;
const faulty = (kind: Faulty["kind"], fault: Fault): PathEffect => ({ kind, fault });
const outcomeOf = (fault: Fault): Outcome => (fault === "timeout" ? "timeout" : "failed");

const NOTHING: readonly PathEffect[] = [];
const DESTROYED: readonly PathEffect[] = [DESTROY_CLIENT];
const STALLED: readonly PathEffect[] = [plain("report-client-stalled"), DESTROY_CLIENT];

/** Steps that leave the state as it is. */
const late = (state: PathState): PathStep => ({ state, effects: NOTHING });
const stalled = (state: PathState): PathStep => ({ state, effects: STALLED });
const destroyed = (state: PathState): PathStep => ({ state, effects: DESTROYED });

function illegal(state: PathState, event: PathEvent): PathStep {
  return { state, effects: [{ kind: "report-illegal", state: state.kind, event: event.kind }] };
}

/**
 * What most requests go through, made once: a first attempt whose answer streams and is whole. Each step's state is known
 * by its identity in the next.
 */
const FIRST_SENT: PathStep = { state: { kind: "waiting", attempts: 1, shown: false }, effects: [SEND] };
const FIRST_BEGUN: PathStep = {
  state: { kind: "holding", attempts: 1, shown: false, carriage: "stream", content: "silent" },
  effects: NOTHING,
};
const FIRST_TOKEN_HELD: PathStep = {
  state: { kind: "holding", attempts: 1, shown: false, carriage: "stream", content: "token" },
  effects: [REPORT_FIRST_TOKEN],
};
const FIRST_PASSING: PathStep = {
  state: { kind: "passing", attempts: 1, carriage: "stream", content: "token" },
  effects: [WRITE_HELD],
};
const FIRST_SERVED: PathStep = {
  state: { kind: "ended", attempts: 1, outcome: "ok" },
  effects: [END_CLIENT, RELEASE, { kind: "finish", outcome: "ok", known: true, counts: "answer" }],
};

const sentTo = (ahead: boolean): "ahead" | "waiting" => (ahead ? "ahead" : "waiting");

const FIRST_TOKEN: readonly PathEffect[] = [REPORT_FIRST_TOKEN];
const HELD: readonly PathEffect[] = [WRITE_HELD];
const HEAD_SHOWN: readonly PathEffect[] = [plain("show-head")];
const FORGOTTEN: readonly PathEffect[] = [FORGET];

function ended({ attempts }: State, outcome: Outcome, effects: readonly PathEffect[]): PathStep {
  return { state: { kind: "ended", attempts, outcome }, effects };
}

/** The gateway answers the request itself, which it can while the client has no head. */
function refused(state: State, outcome: Outcome): PathStep {
  const known = state.kind !== "reading" && state.kind !== "preparing";
  const finish: PathEffect = { kind: "finish", outcome, known, counts: "none" };
  const live = state.kind === "ahead" || state.kind === "waiting" || state.kind === "holding";
  return ended(state, outcome, live ? [RELEASE, WRITE_REFUSAL, finish] : [WRITE_REFUSAL, finish]);
}

/** The same once it was sent; behind a head only a broken connection shows the client that nothing follows. */
function turnedAway(state: Ahead | Waiting | Holding | Failed, { outcome }: Refused): PathStep {
  const afterFault = state.kind === "failed" ? state.fault : undefined;
  return ended(state, outcome, [
    ...(state.kind === "failed" ? NOTHING : [RELEASE]),
    state.shown ? DESTROY_CLIENT : WRITE_REFUSAL,
    { kind: "report-turned-away", afterFault },
    { kind: "finish", outcome, known: true, counts: "none" },
  ]);
}

/** Where the client has a head already, only a broken connection shows it that the gateway failed. */
function failedInside(state: Ahead | Waiting | Holding | Failed): PathStep {
  return state.shown ? destroyed(state) : refused(state, "refused");
}

/** The attempt is over and the client has no byte of it. */
function failed({ attempts, shown }: Ahead | Waiting | Holding, fault: Fault, kept: boolean): PathStep {
  return {
    state: { kind: "failed", attempts, shown, fault, kept },
    effects: [RELEASE, faulty("ask-retry", fault)],
  };
}

const attemptFailed = (state: Ahead | Waiting | Holding, { fault, kept }: AttemptFailed): PathStep =>
  failed(state, fault, kept);

function gaveUp(state: Failed, why: Extract<PathEvent, { kind: "denied" }>["why"]): PathStep {
  const { fault, kept, shown } = state;
  const outcome = outcomeOf(fault);
  const effects: PathEffect[] = fault === "timeout" ? [REPORT_TIMEOUT] : [];
  if (shown) effects.push(faulty("write-error-event", fault), END_CLIENT);
  else effects.push(faulty(kept ? "write-kept" : "write-error", fault));
  effects.push({ kind: "report-given-up", fault, why }, { kind: "finish", outcome, known: true, counts: "none" });
  return ended(state, outcome, effects);
}

/** The client has the head of a stream, begun by an attempt before: an answer of another form is none behind it. */
const isBehindHead = ({ carriage, shown }: Holding): boolean => shown && carriage !== "stream";
const noStream = (state: Holding): PathStep =>
  cut(state, "garbage", [faulty("write-error-event", "garbage"), END_CLIENT]);

/** The answer is whole. */
function complete(state: Holding | Passing, outcome: WholeOutcome): PathStep {
  if (state === FIRST_PASSING.state && outcome === "ok") return FIRST_SERVED;
  const finish: PathEffect = { kind: "finish", outcome, known: true, counts: "answer" };
  if (state.kind === "passing") return ended(state, outcome, [END_CLIENT, RELEASE, finish]);
  if (isBehindHead(state)) return noStream(state);
  if (state.carriage === "whole") return ended(state, outcome, [plain("write-whole"), RELEASE, finish]);
  return ended(state, outcome, [WRITE_HELD, END_CLIENT, RELEASE, finish]);
}

/** The outcome where the mark of completion came. */
function markedOutcome({ content }: Holding | Passing): WholeOutcome | undefined {
  if (content === "complete") return "ok";
  return content === "turned-down" ? "refused" : undefined;
}

function answerEnded(state: Holding | Passing, { outcome, promisesMark }: AnswerEnded): PathStep {
  if (promisesMark && markedOutcome(state) === undefined) return broke(state, "cut");
  return complete(state, outcome);
}

/**
 * It broke: nothing is lost behind the mark of completion, before the first byte another endpoint may help, else it is
 * cut.
 */
function broke(state: Holding | Passing, fault: Fault): PathStep {
  const outcome = markedOutcome(state);
  if (outcome !== undefined) return complete(state, outcome);
  if (state.kind === "holding") return failed(state, fault, false);
  return state.carriage === "stream"
    ? cut(state, fault, [faulty("write-error-event", fault), END_CLIENT])
    : cut(state, fault, DESTROYED);
}

function passingBroke(state: Passing, { fault, continues }: UpstreamBroke): PathStep {
  const goesOn = continues && state.carriage === "stream" && markedOutcome(state) === undefined;
  return goesOn ? severed(state, fault) : broke(state, fault);
}

function cut(state: Holding | Passing, fault: Fault, last: readonly PathEffect[]): PathStep {
  const outcome = outcomeOf(fault);
  const finish: PathEffect = { kind: "finish", outcome, known: true, counts: "answer" };
  return ended(state, outcome, [...last, RELEASE, faulty("report-cut", fault), finish]);
}

function marked(state: Holding | Passing, { outcome }: Marked): PathStep {
  return { state: { ...state, content: outcome === "ok" ? "complete" : "turned-down" }, effects: NOTHING };
}

function firstToken(state: Holding | Passing | Resuming): PathStep {
  if (state === FIRST_BEGUN.state) return FIRST_TOKEN_HELD;
  if (state.content !== "silent" && state.content !== "due") return late(state);
  return { state: { ...state, content: "token" }, effects: FIRST_TOKEN };
}

/** Another attempt takes the place of this one: where it stood by, only of one from which nothing came. */
function replaced(state: Waiting | Holding, event: Replaced): PathStep {
  if (!isReplaceable(state, event)) return illegal(state, event);
  const { attempts, shown } = state;
  return { state: { kind: "waiting", attempts: attempts + 1, shown }, effects: [RELEASE, SEND] };
}

function isReplaceable(state: Waiting | Holding, { by }: Replaced): boolean {
  if (state.kind === "waiting") return by === "standby";
  const { carriage, content } = state;
  if (by === "standby") return content === "silent";
  return carriage !== "through" && content !== "complete" && content !== "turned-down";
}

/** The client left: before anything was sent, or between two attempts of which it has no byte. */
function leftBefore(state: PathState): PathStep {
  return closed(state, [
    FORGET,
    REPORT_CLIENT_LEFT,
    abortion(state.kind !== "reading" && state.kind !== "preparing", "none"),
  ]);
}

/** No attempt is under way, and the client has a part of the answer. */
function leftBetween(state: Severed): PathStep {
  return closed(state, [FORGET, REPORT_CLIENT_LEFT, abortion(true, "seen")]);
}

function left(state: Ahead | Waiting | Holding | Passing | Resuming): PathStep {
  return closed(state, [FORGET, RELEASE, REPORT_CLIENT_LEFT, abortion(true, "seen")]);
}

function abortion(known: boolean, counts: "seen" | "none"): PathEffect {
  return { kind: "finish", outcome: "aborted", known, counts };
}

function closed({ attempts }: PathState, effects: readonly PathEffect[]): PathStep {
  return { state: { kind: "closed", attempts, outcome: "aborted" }, effects };
}

/** The client has a part of a stream, and policy and router are asked where it goes on. */
function severed({ attempts }: Passing | Resuming, fault: Fault): PathStep {
  return { state: { kind: "severed", attempts, fault }, effects: [RELEASE, faulty("ask-resume", fault)] };
}

/** It did not go on: the client gets an error event behind what it has. */
function cutShort({ attempts, kind }: Severed | Resuming, fault: Fault): PathStep {
  const outcome = outcomeOf(fault);
  const finish: PathEffect = { kind: "finish", outcome, known: true, counts: "answer" };
  const live = kind === "resuming" ? [RELEASE] : [];
  const written = [faulty("write-error-event", fault), END_CLIENT];
  return {
    state: { kind: "ended", attempts, outcome },
    effects: [...written, ...live, faulty("report-cut", fault), finish],
  };
}

/** The client has a part of its answer, and no endpoint will send more in time. */
function timedOutBehind(state: Severed | Resuming): PathStep {
  const { state: next, effects } = cutShort(state, "timeout");
  return { state: next, effects: [REPORT_TIMEOUT, ...effects] };
}

const BEFORE = {
  refused: (state: State, { outcome }: { readonly outcome: "refused" | "timeout" }) => refused(state, outcome),
  defect: (state: State) => refused(state, "refused"),
  "client-left": leftBefore,
};

/** The request is with an endpoint, of which nothing came. */
const SENT_OUT = {
  "answer-began": (state: Ahead | Waiting, { carriage }: AnswerBegan): PathStep => {
    if (state === FIRST_SENT.state && carriage === "stream") return FIRST_BEGUN;
    const { attempts, shown } = state;
    return { state: { kind: "holding", attempts, shown, carriage, content: "silent" }, effects: NOTHING };
  },
  "attempt-failed": attemptFailed,
  "upstream-broke": (state: Ahead | Waiting, { fault }: UpstreamBroke) => failed(state, fault, false),
  "timed-out": (state: Ahead | Waiting) => failed(state, "timeout", false),
  refused: turnedAway,
  defect: failedInside,
  "client-left": left,
  "client-stalled": stalled,
};

const TABLE: { readonly [S in StateKind]: Row<S> } = {
  reading: {
    ...BEFORE,
    "body-read": () => ({ state: { kind: "preparing", attempts: 0 }, effects: NOTHING }),
  },
  preparing: {
    ...BEFORE,
    arrived: () => ({ state: { kind: "deciding", attempts: 0 }, effects: NOTHING }),
  },
  deciding: {
    ...BEFORE,
    routed: (_state, { ahead }) =>
      ahead ? { state: { kind: "ahead", attempts: 1, shown: false }, effects: FIRST_SENT.effects } : FIRST_SENT,
  },
  ahead: {
    ...SENT_OUT,
    "ahead-done": ({ attempts, shown }) => ({
      state: { kind: "waiting", attempts, shown },
      effects: [RELEASE, REPORT_AHEAD, SEND],
    }),
  },
  waiting: { ...SENT_OUT, replaced },
  holding: {
    "first-token": firstToken,
    "hold-full": (state) =>
      state.content === "silent" ? { state: { ...state, content: "due" }, effects: NOTHING } : late(state),
    marked,
    "first-bytes": (state, event) => {
      if (state === FIRST_TOKEN_HELD.state) return FIRST_PASSING;
      const { attempts, carriage, content } = state;
      if (carriage === "whole" || (carriage === "stream" && content === "silent")) return illegal(state, event);
      if (isBehindHead(state)) return noStream(state);
      return { state: { kind: "passing", attempts, carriage, content }, effects: HELD };
    },
    "let-through": (state, event) =>
      state.carriage === "whole"
        ? { state: { ...state, carriage: "through" }, effects: NOTHING }
        : illegal(state, event),
    "hold-over": (state, event) => {
      if (state.carriage !== "stream" || state.shown) return illegal(state, event);
      return { state: { ...state, shown: true }, effects: HEAD_SHOWN };
    },
    replaced,
    "attempt-failed": attemptFailed,
    "answer-ended": answerEnded,
    "upstream-broke": (state, { fault }) => broke(state, fault),
    "timed-out": (state) => broke(state, "timeout"),
    refused: turnedAway,
    defect: failedInside,
    "client-left": left,
    "client-stalled": stalled,
  },
  passing: {
    "first-token": firstToken,
    marked,
    "answer-ended": answerEnded,
    "engine-error": (state) => cut(state, "status", [END_CLIENT]),
    "upstream-broke": passingBroke,
    "timed-out": (state) => {
      const { state: next, effects } = broke(state, "timeout");
      return { state: next, effects: [REPORT_TIMEOUT, ...effects] };
    },
    defect: destroyed,
    "client-left": left,
    "client-stalled": stalled,
  },
  failed: {
    rerouted: ({ attempts, shown, fault }, { ahead }) => ({
      state: { kind: sentTo(ahead), attempts: attempts + 1, shown },
      effects: [faulty("report-retried", fault), SEND],
    }),
    denied: (state, { why }) => gaveUp(state, why),
    "timed-out": (state) => gaveUp({ ...state, fault: "timeout", kept: false }, "time"),
    refused: turnedAway,
    defect: failedInside,
    "client-left": leftBefore,
  },
  severed: {
    rerouted: ({ attempts, fault }) => ({
      state: { kind: "resuming", attempts: attempts + 1, content: "silent" },
      effects: [faulty("report-continued", fault), SEND],
    }),
    denied: (state) => cutShort(state, state.fault),
    "timed-out": timedOutBehind,
    refused: (state) => cutShort(state, state.fault),
    defect: destroyed,
    "client-left": leftBetween,
  },
  resuming: {
    "first-token": firstToken,
    "first-bytes": (state, event) =>
      state.content === "token"
        ? { state: { kind: "passing", attempts: state.attempts, carriage: "stream", content: "token" }, effects: HELD }
        : illegal(state, event),
    "attempt-failed": (state, { fault }) => severed(state, fault),
    "upstream-broke": (state, { fault }) => severed(state, fault),
    "answer-ended": (state) => severed(state, "cut"),
    "timed-out": timedOutBehind,
    refused: (state) => cutShort(state, "garbage"),
    defect: destroyed,
    "client-left": left,
    "client-stalled": stalled,
  },
  ended: {
    "client-left": ({ attempts, outcome }) => ({ state: { kind: "closed", attempts, outcome }, effects: FORGOTTEN }),
    "client-stalled": stalled,
    defect: destroyed,
    "body-read": late,
    refused: late,
  },
  closed: { "body-read": late, refused: late, defect: late },
};
