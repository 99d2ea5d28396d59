import type { Fault } from "#core/endpoint/fault.ts";
import type { Outcome } from "#core/endpoint/outcome.ts";

import {
  END_CLIENT,
  FORGET,
  RELEASE,
  REPORT_FIRST_TOKEN,
  REPORT_PREFILLED,
  REPORT_TIMEOUT,
  SEND,
  WRITE_HELD,
  WRITE_REFUSAL,
  plain,
  faulty,
  outcomeOf,
} from "./plain-effect.ts";
import type { RequestEffect } from "./request-effect.ts";
import type {
  AnswerBegan,
  AnswerEnded,
  AttemptFailed,
  Marked,
  Refused,
  RequestEvent,
  UpstreamBroke,
  WholeOutcome,
} from "./request-event.ts";
import { left, leftBefore, leftBetween } from "./left-step.ts";
import { DESTROYED, destroyed, illegal, late, NOTHING, stalled } from "./plain-step.ts";
import { cutShort, severed } from "./severed-step.ts";
import type { Row, StateKind } from "./row.ts";
import type { Step } from "./step.ts";
import type { Failed, Holding, Passing, Prefilling, RequestState, Resuming, Waiting } from "./request-state.ts";

/**
 * What an event does to a request. An event without a meaning in a state changes nothing: one that may come late is
 * passed over, any other is reported as a defect.
 */
export function transition(state: RequestState, event: RequestEvent): Step {
  const row = TABLE[state.kind] as Readonly<
    Record<string, ((state: RequestState, event: RequestEvent) => Step) | undefined>
  >;
  return row[event.kind]?.(state, event) ?? illegal(state, event);
}

type State = RequestState;

const SENT: readonly RequestEffect[] = [SEND];
const FIRST_TOKEN: readonly RequestEffect[] = [REPORT_FIRST_TOKEN];
const HELD: readonly RequestEffect[] = [WRITE_HELD];
const HEAD_SHOWN: readonly RequestEffect[] = [plain("show-head")];
const FORGOTTEN: readonly RequestEffect[] = [FORGET];

function ended({ attempts }: State, outcome: Outcome, effects: readonly RequestEffect[]): Step {
  return { state: { kind: "ended", attempts, outcome }, effects };
}

/** The gateway answers the request itself, which it can while the client has no head. */
function refused(state: State, outcome: Outcome): Step {
  const known = state.kind !== "reading" && state.kind !== "preparing";
  const finish: RequestEffect = { kind: "finish", outcome, known, counts: "none" };
  const live = state.kind === "prefilling" || state.kind === "waiting" || state.kind === "holding";
  return ended(state, outcome, live ? [RELEASE, WRITE_REFUSAL, finish] : [WRITE_REFUSAL, finish]);
}

/** Where the client has a head already, only a broken connection shows it that the gateway failed. */
function failedInside(state: Prefilling | Waiting | Holding | Failed): Step {
  return state.shown ? destroyed(state) : refused(state, "refused");
}

/** The attempt is over and the client has no byte of it. */
function failed({ attempts, shown }: Prefilling | Waiting | Holding, fault: Fault, kept: boolean): Step {
  return {
    state: { kind: "failed", attempts, shown, fault, kept },
    effects: [RELEASE, faulty("ask-retry", fault)],
  };
}

const attemptFailed = (state: Prefilling | Waiting | Holding, { fault, kept }: AttemptFailed): Step =>
  failed(state, fault, kept);

function gaveUp(state: Failed, why: Extract<RequestEvent, { kind: "denied" }>["why"]): Step {
  const { fault, kept, shown } = state;
  const outcome = outcomeOf(fault);
  const effects: RequestEffect[] = fault === "timeout" ? [REPORT_TIMEOUT] : [];
  if (shown) effects.push(faulty("write-error-event", fault), END_CLIENT);
  else effects.push(faulty(kept ? "write-kept" : "write-error", fault));
  effects.push({ kind: "report-given-up", fault, why }, { kind: "finish", outcome, known: true, counts: "none" });
  return ended(state, outcome, effects);
}

/** The answer is whole. */
function complete(state: Holding | Passing, outcome: WholeOutcome): Step {
  const finish: RequestEffect = { kind: "finish", outcome, known: true, counts: "answer" };
  if (state.kind === "passing") return ended(state, outcome, [END_CLIENT, RELEASE, finish]);
  if (state.carriage === "whole") return ended(state, outcome, [plain("write-whole"), RELEASE, finish]);
  return ended(state, outcome, [WRITE_HELD, END_CLIENT, RELEASE, finish]);
}

/** The outcome where the mark of completion came. */
function markedOutcome({ content }: Holding | Passing): WholeOutcome | undefined {
  if (content === "complete") return "ok";
  return content === "turned-down" ? "refused" : undefined;
}

function answerEnded(state: Holding | Passing, { outcome, promisesMark }: AnswerEnded): Step {
  if (promisesMark && markedOutcome(state) === undefined) return broke(state, "cut");
  return complete(state, outcome);
}

/**
 * It broke: nothing is lost behind the mark of completion, before the first byte another endpoint may help, else it is
 * cut.
 */
function broke(state: Holding | Passing, fault: Fault): Step {
  const outcome = markedOutcome(state);
  if (outcome !== undefined) return complete(state, outcome);
  if (state.kind === "holding") return failed(state, fault, false);
  return state.carriage === "stream"
    ? cut(state, fault, [faulty("write-error-event", fault), END_CLIENT])
    : cut(state, fault, DESTROYED);
}

function passingBroke(state: Passing, { fault, continues }: UpstreamBroke): Step {
  const goesOn = continues && state.carriage === "stream" && markedOutcome(state) === undefined;
  return goesOn ? severed(state, fault) : broke(state, fault);
}

function cut(state: Passing, fault: Fault, last: readonly RequestEffect[]): Step {
  const outcome = outcomeOf(fault);
  const finish: RequestEffect = { kind: "finish", outcome, known: true, counts: "answer" };
  return ended(state, outcome, [...last, RELEASE, faulty("report-cut", fault), finish]);
}

function marked(state: Holding | Passing, { outcome }: Marked): Step {
  return { state: { ...state, content: outcome === "ok" ? "complete" : "turned-down" }, effects: NOTHING };
}

function firstToken(state: Holding | Passing | Resuming): Step {
  if (state.content !== "silent" && state.content !== "due") return late(state);
  return { state: { ...state, content: "token" }, effects: FIRST_TOKEN };
}

/** The attempt is left for one that a second endpoint has begun to answer. */
function overtaken(state: Waiting | Holding, event: RequestEvent): Step {
  if (state.kind === "holding" && state.content !== "silent") return illegal(state, event);
  const { attempts, shown } = state;
  return { state: { kind: "waiting", attempts: attempts + 1, shown }, effects: [RELEASE, SEND] };
}

const BEFORE = {
  refused: (state: State, { outcome }: { readonly outcome: "refused" | "timeout" }) => refused(state, outcome),
  defect: (state: State) => refused(state, "refused"),
  "client-left": leftBefore,
};

/** The request is with an endpoint, of which nothing came. */
const SENT_OUT = {
  "answer-began": ({ attempts, shown }: Prefilling | Waiting, { carriage }: AnswerBegan): Step => ({
    state: { kind: "holding", attempts, shown, carriage, content: "silent" },
    effects: NOTHING,
  }),
  "attempt-failed": attemptFailed,
  "upstream-broke": (state: Prefilling | Waiting, { fault }: UpstreamBroke) => failed(state, fault, false),
  "timed-out": (state: Prefilling | Waiting) => failed(state, "timeout", false),
  refused: (state: Prefilling | Waiting, { outcome }: Refused) =>
    state.shown ? destroyed(state) : refused(state, outcome),
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
    routed: () => ({ state: { kind: "waiting", attempts: 1, shown: false }, effects: SENT }),
    "routed-apart": () => ({ state: { kind: "prefilling", attempts: 1, shown: false }, effects: SENT }),
  },
  prefilling: {
    ...SENT_OUT,
    prefilled: ({ attempts, shown }) => ({
      state: { kind: "waiting", attempts, shown },
      effects: [RELEASE, REPORT_PREFILLED, SEND],
    }),
  },
  waiting: { ...SENT_OUT, overtaken },
  holding: {
    "first-token": firstToken,
    "hold-full": (state) =>
      state.content === "silent" ? { state: { ...state, content: "due" }, effects: NOTHING } : late(state),
    marked,
    "first-bytes": (state, event) => {
      const { attempts, carriage, content } = state;
      if (carriage === "whole" || (carriage === "stream" && content === "silent")) return illegal(state, event);
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
    escalated: (state, event) => {
      const { attempts, shown, carriage, content } = state;
      if (carriage === "through" || content === "complete" || content === "turned-down") return illegal(state, event);
      return { state: { kind: "waiting", attempts: attempts + 1, shown }, effects: [RELEASE, SEND] };
    },
    overtaken,
    "attempt-failed": attemptFailed,
    "answer-ended": answerEnded,
    "upstream-broke": (state, { fault }) => broke(state, fault),
    "timed-out": (state) => broke(state, "timeout"),
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
    rerouted: ({ attempts, shown, fault }) => ({
      state: { kind: "waiting", attempts: attempts + 1, shown },
      effects: [faulty("report-retried", fault), SEND],
    }),
    "rerouted-apart": ({ attempts, shown, fault }) => ({
      state: { kind: "prefilling", attempts: attempts + 1, shown },
      effects: [faulty("report-retried", fault), SEND],
    }),
    denied: (state, { why }) => gaveUp(state, why),
    defect: failedInside,
    "client-left": leftBefore,
  },
  severed: {
    rerouted: ({ attempts, fault }) => ({
      state: { kind: "resuming", attempts: attempts + 1, content: "silent" },
      effects: [faulty("report-continued", fault), SEND],
    }),
    denied: (state) => cutShort(state, state.fault),
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
    "timed-out": (state) => {
      const { state: next, effects } = cutShort(state, "timeout");
      return { state: next, effects: [REPORT_TIMEOUT, ...effects] };
    },
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
