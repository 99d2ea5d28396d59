import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { describe, test } from "node:test";

import fc from "fast-check";

import type { PathEffect } from "#core/path/path-effect.ts";
import { type PathEvent, REROUTED, ROUTED } from "#core/path/path-event.ts";
import type { Holding, PathState } from "#core/path/path-state.ts";
import type { Routed } from "#core/input/decision.ts";
import type { Fault } from "#core/endpoint/fault.ts";
import type { NextPlace, PathRouter } from "#core/path/path-router.ts";
import { type PathHost, type PerformedEffect, RequestPath } from "#core/path/request-path.ts";
import { isOverdue } from "#core/path/look.ts";
import type { PathStage } from "#core/path/stage.ts";
import { transition } from "#core/path/transition.ts";
import type { WaitLimits } from "#core/path/wait-verdict.ts";

import { EVENTS, SEQUENCES, STATES } from "./drawn-events.ts";

/** Each ends what the client gets, in one of four ways. */
const ENDS: ReadonlySet<string> = new Set(["write-whole", "write-kept", "write-error", "write-refusal", "end-client"]);
const WRITES: ReadonlySet<string> = new Set([...ENDS, "show-head", "write-held", "write-error-event"]);
const CLIENT: ReadonlySet<string> = new Set([
  "destroy-client",
  "report-client-left",
  "report-client-stalled",
  "forget",
]);
/** What is reported of a failed attempt: the request goes on, or ends. */
const PATH_ONS: ReadonlySet<string> = new Set(["report-retried", "report-continued"]);
const PATH_ENDS: ReadonlySet<string> = new Set(["report-given-up", "report-cut", "report-turned-away"]);
const ALIVE: ReadonlySet<PathState["kind"]> = new Set(["ahead", "waiting", "holding", "passing", "resuming"]);

const ASKS: ReadonlySet<string> = new Set(["send", "ask-retry", "ask-resume"]);
const ATTEMPTS_MAX = 4;

/** One request whose effects are written down; what asks is answered by draws. */
class Recorded implements PathHost {
  readonly run = new RequestPath(this);
  /** Effects, "bytes" that passed and the "mark" of completion that did, in order. */
  readonly log: (PathEffect | { readonly kind: "bytes" | "mark" | "arrived" })[] = [];
  readonly states: PathState["kind"][] = ["reading"];
  defects = 0;
  /** The code's own defect ended it. */
  failedInside = false;
  readonly #draws: readonly number[];
  readonly #throws: boolean;
  #drawn = 0;

  constructor(draws: readonly number[], throws: boolean) {
    this.#draws = draws;
    this.#throws = throws;
  }

  readonly routeId = "r";
  readonly stages: readonly PathStage[] = [
    {
      aheadDone: () => void this.log.push({ kind: "report-ahead" }),
      wentOn: (fault) => void this.log.push({ kind: "report-continued", fault }),
      // One attempt in seven is taken over by another endpoint that has the request already; of one in eleven that is decided later.
      takesOver: () => {
        const draw = this.#draws[this.#drawn++ % this.#draws.length]!;
        if (draw % 11 === 4) return "later";
        return draw % 7 === 3 && this.run.state.attempts < ATTEMPTS_MAX ? REROUTED : undefined;
      },
      goesOn: (fault) => {
        this.log.push({ kind: "ask-resume", fault });
        const draw = this.#draws[this.#drawn++ % this.#draws.length]!;
        if (this.#throws && draw % 5 === 0) throw new Error("a stage fails");
        return draw % 3 === 0 || this.run.state.attempts >= ATTEMPTS_MAX ? { kind: "denied", why: "budget" } : REROUTED;
      },
    },
  ];
  retried(): void {}
  faulted(fault: Fault): void {
    this.log.push({ kind: "ask-retry", fault });
  }
  get router(): PathRouter {
    const retry = (): NextPlace => {
      const draw = this.#draws[this.#drawn++ % this.#draws.length]!;
      if (this.#throws && draw % 5 === 0) throw new Error("the router fails");
      return draw % 3 === 0 || this.run.state.attempts >= ATTEMPTS_MAX
        ? { kind: "give-up", why: "budget" }
        : { kind: "retry", decision: { kind: "routed" } as Routed };
    };
    return { retry, attemptFailed: () => {} } as unknown as PathRouter;
  }

  perform(effect: PerformedEffect): PathEvent | undefined {
    this.log.push(effect);
    const draw = this.#draws[this.#drawn++ % this.#draws.length]!;
    if (this.#throws && draw % 5 === 0) throw new Error(effect.kind);
    if (effect.kind === "send" && draw % 4 === 1) {
      return { kind: "attempt-failed", fault: draw % 8 === 1 ? "connect" : "saturated", kept: false };
    }
    return undefined;
  }

  threw(): void {
    this.defects++;
  }

  dispatch(event: PathEvent): void {
    const { state } = this.run;
    if (event.kind === "arrived" && state.kind === "preparing") this.log.push({ kind: "arrived" });
    this.run.dispatch(event);
    this.states.push(this.run.state.kind);
    const { state: after } = this.run;
    if (event.kind === "defect" && after.kind === "ended" && state.kind !== "ended") this.failedInside = true;
    // The mark is bytes of the answer: it passes with what is held, or at once while bytes pass.
    if (after.kind === "passing") this.log.push({ kind: "bytes" });
    if (after.kind === "passing" && after.carriage !== "stream") {
      assert.equal(this.count("show-head"), 0, "only a stream passes behind the head of one");
    }
    if (after.kind === "passing" && (after.content === "complete" || after.content === "turned-down")) {
      this.log.push({ kind: "mark" });
    }
  }

  count(...kinds: readonly string[]): number {
    return this.log.filter(({ kind }) => kinds.includes(kind)).length;
  }

  finish() {
    const one = this.log.find((effect) => effect.kind === "finish");
    assert.ok(one?.kind === "finish");
    return one;
  }
}

function assertLawful(request: Recorded): void {
  const { log, run } = request;
  const over = run.state.kind === "ended" || run.state.kind === "closed";
  assert.equal(request.count("finish"), over ? 1 : 0, "exactly one end, reported once");
  assert.equal(request.count("forget"), run.state.kind === "closed" ? 1 : 0, "forgotten once, when the client is gone");
  let alive = 0;
  let ended = false;
  let bytes = false;
  let cut = false;
  let known = false;
  let tokens = 0;
  let head = false;
  let goesOn = false;
  let unlogged = 0;
  for (const { kind } of log) {
    if (kind === "ask-retry" || kind === "ask-resume")
      assert.equal(++unlogged, 1, "a failed attempt is reported before another one fails");
    if (PATH_ONS.has(kind)) assert.equal(--unlogged, 0, `${kind} of an attempt that failed`);
    if (PATH_ENDS.has(kind)) unlogged = 0;
    if (kind === "arrived") known = true;
    if (kind === "send") {
      assert.equal(++alive, 1, "never two attempts alive");
      tokens = 0;
    }
    if (kind === "release-attempt") assert.equal(--alive, 0, "an attempt is released once");
    if (kind === "report-first-token") assert.equal(++tokens, 1, "one first token an attempt");
    if (kind === "ask-retry" || kind === "report-retried") assert.ok(!bytes, "no retry once the client has a byte");
    if (kind === "ask-resume") {
      assert.ok(bytes, "no continuation before the client has a byte");
      goesOn = true;
    }
    if (kind === "send" && bytes) {
      assert.ok(goesOn, "nothing is sent once the client has a byte but a continuation that was asked for");
      goesOn = false;
    }
    if (kind === "bytes" || kind === "mark" || WRITES.has(kind)) assert.ok(!ended, `${kind} after the end`);
    if (kind === "bytes") bytes = true;
    if (kind !== "end-client" && (kind === "show-head" || ENDS.has(kind))) assert.ok(!head, `${kind} behind a head`);
    if (WRITES.has(kind)) head = true;
    if (kind === "report-cut" || kind === "write-error-event") cut = true;
    if (kind === "mark" || kind === "bytes") assert.ok(!cut, "no mark and no byte after a cut");
    if (ENDS.has(kind)) ended = true;
    if (kind.startsWith("report-") && !kind.startsWith("report-client") && kind !== "report-illegal") {
      assert.ok(known, `${kind} of a request that the router does not know`);
    }
  }
  assert.equal(
    alive,
    ALIVE.has(run.state.kind) ? 1 : 0,
    "an attempt is alive where the state has it so, and nowhere else",
  );
  if (over) {
    assertReported(request, unlogged);
    assert.equal(
      request.finish().known,
      known,
      "the router is informed of the end of what it knows, and of nothing else",
    );
    const left = run.state.kind === "closed" && request.finish().outcome === "aborted";
    assert.ok(left || ended || request.count("destroy-client") > 0, "the client's side is ended");
    assert.equal(request.finish().outcome, (run.state as { outcome: string }).outcome);
  }
}

/**
 * Log and counts get one line for each attempt that failed, and one for each end that the client sees of a request that was
 * sent: none where an engine's answer is whole, its client left or the code failed, which have theirs.
 */
function assertReported(request: Recorded, unlogged: number): void {
  const { outcome } = request.finish();
  const lines = request.count(...PATH_ENDS);
  if (outcome === "aborted" || request.failedInside) return assert.equal(lines, 0);
  assert.equal(unlogged, 0, "each failed attempt is reported");
  const isAnswered = request.count("write-whole") > 0 || (request.count("end-client") > 0 && lines === 0);
  if (isAnswered) assert.ok(outcome === "ok" || outcome === "refused" || request.finish().counts === "answer");
  assert.equal(lines, request.count("send") > 0 && !isAnswered ? 1 : 0, "one line for an end that is no answer");
}

/** What the client has in the end goes with the outcome. */
function assertAnswered(request: Recorded): void {
  const { outcome } = request.finish();
  const said = new Set<string>(request.log.map(({ kind }) => kind));
  const whole = said.has("write-whole") || (said.has("end-client") && !said.has("report-cut"));
  switch (outcome) {
    case "ok":
      assert.ok(whole && !said.has("write-error-event"));
      break;
    case "aborted":
      assert.ok(said.has("report-client-left"));
      break;
    case "refused":
      assert.ok(whole || said.has("write-refusal") || said.has("destroy-client"));
      break;
    case "failed":
    case "timeout":
      assert.ok(
        ["write-error", "write-kept", "write-refusal", "write-error-event", "report-cut", "report-turned-away"].some(
          (one) => said.has(one),
        ),
      );
  }
}

const DRAWS = fc.array(fc.nat({ max: 59 }), { minLength: 1, maxLength: 40 });
const played = (events: readonly PathEvent[], draws: readonly number[], throws = false): Recorded => {
  const request = new Recorded(draws, throws);
  for (const event of events) request.dispatch(event);
  return request;
};
const RUNS = { numRuns: 1_500 };
/** The head of a stream is out as its attempt ends, and the next one is answered in another form. */
const behindHead = (carriage: "whole" | "through", ...events: readonly PathEvent[]): [PathEvent[], number[]] => [
  [...HEAD_OUT, { kind: "answer-began", carriage }, ...events],
  [43, 0],
];
const HEAD_OUT: readonly PathEvent[] = [
  { kind: "body-read" },
  { kind: "arrived" },
  { kind: "routed", ahead: false },
  { kind: "answer-began", carriage: "stream" },
  { kind: "hold-over" },
  { kind: "timed-out" },
];
const WHOLE_END: PathEvent = { kind: "answer-ended", outcome: "ok", promisesMark: false };
const BEHIND_HEAD = [
  behindHead("whole", WHOLE_END),
  behindHead("whole", { kind: "let-through" }, { kind: "first-bytes" }),
  behindHead("through", { kind: "first-bytes" }),
  behindHead("through", WHOLE_END),
];

describe("whatever happens to a request, in whatever order", () => {
  test("it keeps the laws at every step", () => {
    fc.assert(
      fc.property(SEQUENCES, DRAWS, (events, draws) => {
        const request = new Recorded(draws, false);
        for (const event of events) {
          request.dispatch(event);
          assertLawful(request);
        }
      }),
      { ...RUNS, examples: BEHIND_HEAD },
    );
  });

  test("and where effects throw: all others are carried out", () => {
    fc.assert(
      fc.property(SEQUENCES, DRAWS, (events, draws) => {
        const request = played(events, draws, true);
        request.dispatch({ kind: "client-left" });
        assert.equal(request.count("finish"), 1);
        assert.equal(request.count("forget"), 1);
        assert.equal(request.count("send"), request.count("release-attempt"));
        assert.equal(request.run.state.kind, "closed");
      }),
      RUNS,
    );
  });

  test("it is over and done once the client is gone", () => {
    fc.assert(
      fc.property(SEQUENCES, DRAWS, (events, draws) => {
        const request = played(events, draws);
        request.dispatch({ kind: "client-left" });
        assert.equal(request.run.state.kind, "closed");
        assertLawful(request);
        assertAnswered(request);
      }),
      RUNS,
    );
  });

  test("it ends once the engine's side does, without the client", () => {
    fc.assert(
      fc.property(SEQUENCES, DRAWS, fc.constantFrom("connect", "cut", "timeout", "hung"), (events, draws, fault) => {
        const request = played(events, draws);
        for (let i = 0; i < ATTEMPTS_MAX && ALIVE.has(request.run.state.kind); i++)
          request.dispatch({ kind: "upstream-broke", fault, continues: false });
        // A stage that answers later does so.
        if (request.run.state.kind === "failed") request.dispatch({ kind: "denied", why: "budget" });
        for (let i = 0; i < 3; i++) request.dispatch({ kind: "refused", outcome: "refused" });
        assert.ok(request.run.state.kind === "ended" || request.run.state.kind === "closed");
        assertLawful(request);
        assertAnswered(request);
      }),
      RUNS,
    );
  });

  test("a state is never left backwards but by a retry", () => {
    const order = "reading preparing deciding ahead waiting holding passing failed resuming ended closed".split(" ");
    const again = new Set(["ahead", "waiting"]);
    const back = (kind: string, before: string): boolean =>
      (again.has(kind) && (before === "holding" || before === "waiting" || before === "failed")) ||
      (kind === "passing" && before === "resuming");
    fc.assert(
      fc.property(SEQUENCES, DRAWS, (events, draws) => {
        const { states } = played(events, draws);
        states.forEach((kind, i) => {
          const before = states[i - 1] ?? "reading";
          const isBack = order.indexOf(kind) < order.indexOf(before);
          assert.ok(!isBack || back(kind, before), `${before} to ${kind}`);
        });
      }),
      RUNS,
    );
  });

  test("drawn sequences come to every state and to every effect", () => {
    const seen = new Set<string>();
    const effects = new Set<string>();
    fc.assert(
      fc.property(SEQUENCES, DRAWS, (events, draws) => {
        const request = played(events, draws);
        for (const kind of request.states) seen.add(kind);
        for (const { kind } of request.log) effects.add(kind);
      }),
      RUNS,
    );
    // One lasts only until a stage has answered, which here does so at once.
    assert.deepEqual(
      STATES.filter(({ kind }) => !seen.has(kind) && kind !== "severed"),
      [],
    );
    const possible = new Set(STATES.flatMap((state) => EVENTS.flatMap((event) => transition(state, event).effects)));
    assert.deepEqual(
      [...possible].filter(({ kind }) => !effects.has(kind)),
      [],
    );
  });
});

describe("an event without a meaning in a state", () => {
  test("changes nothing, and is passed over or reported by name", () => {
    for (const state of STATES) {
      for (const event of EVENTS) {
        const step = transition(state, event);
        const illegal = step.effects.find(({ kind }) => kind === "report-illegal");
        if (illegal === undefined) continue;
        assert.equal(step.state, state);
        assert.deepEqual(step.effects, [{ kind: "report-illegal", state: state.kind, event: event.kind }]);
      }
    }
  });

  test("a stage replaces an attempt of which nothing is the client's: anew once there is an answer, else by what stands by", () => {
    const replaces = (state: PathState, by: "standby" | "anew"): boolean =>
      transition(state, { kind: "replaced", by }).state !== state;
    const by = (kind: "standby" | "anew") => STATES.filter((state) => replaces(state, kind));
    const isHeld = (state: PathState): state is Holding => state.kind === "holding";
    assert.deepEqual(
      by("standby"),
      STATES.filter((state) => state.kind === "waiting" || (isHeld(state) && state.content === "silent")),
    );
    assert.deepEqual(
      by("anew"),
      STATES.filter(isHeld).filter(
        ({ carriage, content }) => carriage !== "through" && content !== "complete" && content !== "turned-down",
      ),
    );
  });

  test("whoever is not waited for any more is turned away, in every state in which its answer has not begun to pass", () => {
    for (const state of STATES.filter(({ kind }) => kind !== "passing")) {
      const { state: after, effects } = transition(state, { kind: "refused", outcome: "refused" });
      assert.ok(after.kind === "ended" || after.kind === "closed", state.kind);
      const isBehindHead = "shown" in state && state.shown;
      assert.equal(
        effects.some(({ kind }) => kind === "destroy-client"),
        isBehindHead,
        state.kind,
      );
      const isSent = "shown" in state || state.kind === "severed" || state.kind === "resuming";
      assert.equal(effects.filter(({ kind }) => PATH_ENDS.has(kind)).length, isSent ? 1 : 0, state.kind);
    }
  });

  test("a transition changes neither its state nor its event", () => {
    const copy = JSON.stringify([STATES, EVENTS]);
    for (const state of STATES) for (const event of EVENTS) transition(state, event);
    assert.equal(JSON.stringify([STATES, EVENTS]), copy);
  });

  test("effects that ask stand last, one a step", () => {
    for (const state of STATES) {
      for (const event of EVENTS) {
        const asks = transition(state, event).effects.map(({ kind }) => ASKS.has(kind));
        assert.ok(!asks.slice(0, -1).includes(true), `${state.kind} ${event.kind}`);
      }
    }
  });
});

test("between two attempts limits of time are looked at, and at no other moment", () => {
  const limits = { totalMicrosMax: 100, firstByteMicrosMax: 50 } as WaitLimits;
  const overdueAt = (kind: PathState["kind"], at: number, streams: boolean, deadlineAt = Infinity): boolean =>
    isOverdue({ state: { kind } } as RequestPath, { at, arrivedAt: 0, deadlineAt, streams }, limits);
  for (const { kind } of STATES) {
    const between = kind === "failed" || kind === "severed";
    assert.equal(overdueAt(kind, 101, true), between, kind);
    assert.equal(overdueAt(kind, 11, false, 10), between, kind);
    assert.equal(overdueAt(kind, 51, true), kind === "failed", `${kind} without a byte`);
    assert.equal(overdueAt(kind, 51, false), false);
    assert.equal(overdueAt(kind, 10, true, 10), false);
  }
});

test("an attempt that stands by takes over before a stage that puts the retry off, whichever is named first", () => {
  const later: PathStage = { takesOver: () => "later" };
  const standby: PathStage = { standsBy: true, takesOver: () => REROUTED };
  for (const stages of [[later], [later, standby], [standby, later]]) {
    const informed: Fault[] = [];
    const router = { attemptFailed: (_id: string, fault: Fault) => void informed.push(fault) } as unknown as PathRouter;
    const effects: string[] = [];
    const perform = ({ kind }: PerformedEffect): undefined => void effects.push(kind);
    const run = new RequestPath({ routeId: "r", stages, router, perform, threw() {}, faulted() {}, retried() {} });
    for (const event of [...READ, { kind: "attempt-failed", fault: "cut", kept: false } as const]) run.dispatch(event);
    assert.equal(run.state.kind, stages.includes(standby) ? "waiting" : "failed");
    assert.deepEqual(informed, [], "whoever answers informs the router");
    run.dispatch({ kind: "refused", outcome: "refused" });
    assert.equal(run.state.kind, "ended");
    assert.ok(effects.includes("write-refusal"));
  }
});

const READ: readonly PathEvent[] = [{ kind: "body-read" }, { kind: "arrived" }, ROUTED];
const began = (carriage: "stream" | "whole" | "through"): readonly PathEvent[] => [
  ...READ,
  { kind: "answer-began", carriage },
];
const streams: readonly PathEvent[] = [...began("stream"), { kind: "first-token" }, { kind: "first-bytes" }];
const through: readonly PathEvent[] = [...began("through"), { kind: "first-bytes" }];
const marked: PathEvent = { kind: "marked", outcome: "ok" };
const ends: PathEvent = { kind: "answer-ended", outcome: "ok", promisesMark: true };
const breaks: PathEvent = { kind: "upstream-broke", fault: "cut", continues: false };
const severs: PathEvent = { ...breaks, continues: true };

test("the machine's own files name no stage", () => {
  const folder = new URL("../../../src/core/path/", import.meta.url);
  const stages = /hedg|cascad|escalat|disaggregat|hand-?off|prefill/i;
  const naming = globSync("*.ts", { cwd: folder }).filter((file) =>
    stages.test(readFileSync(new URL(file, folder), "utf8")),
  );
  assert.deepEqual(naming, []);
});

test("the table of states is as the code has it", () => {
  const text = readFileSync(new URL("../../../src/core/path/README.md", import.meta.url), "utf8");
  const written = [...text.matchAll(/^\| `(\w+)` \| .* \| (.*) \|$/gm)].map(([, state, cells]) => [
    state,
    cells!.split("; ").sort(),
  ]);
  const kinds = [...new Set(STATES.map(({ kind }) => kind))];
  assert.deepEqual(
    written,
    kinds.map((kind) => [kind, cellsOf(kind)]),
  );
});

/** As the table has them: each event that has a meaning in some state of a kind, and the kinds that may follow. */
function cellsOf(kind: PathState["kind"]): string[] {
  const nexts = new Map<string, Set<string>>();
  for (const state of STATES.filter((one) => one.kind === kind)) {
    for (const event of EVENTS) {
      const { state: next, effects } = transition(state, event);
      if (effects.some((one) => one.kind === "report-illegal")) continue;
      const known = nexts.get(event.kind) ?? new Set();
      if (next !== state || effects.length > 0) known.add(next.kind);
      nexts.set(event.kind, known);
    }
  }
  return [...nexts]
    .map(([event, next]) =>
      next.size === 0 ? `\`${event}\`, late` : `\`${event}\` → ${[...next].sort().join(" or ")}`,
    )
    .sort();
}

describe("what becomes of an answer", () => {
  const cases: readonly (readonly [name: string, events: readonly PathEvent[], effects: string, outcome: string])[] = [
    ["a stream that ends behind its mark is whole", [...streams, marked, ends], "end-client", "ok"],
    ["a stream that breaks behind its mark is whole", [...streams, marked, breaks], "end-client", "ok"],
    [
      "a refusal behind whose mark the stream breaks is a refusal",
      [...began("stream"), { kind: "hold-full" }, { kind: "first-bytes" }, { ...marked, outcome: "refused" }, breaks],
      "end-client",
      "refused",
    ],
    ["a stream that ends without its mark is cut", [...streams, ends], "write-error-event end-client", "failed"],
    [
      "a stream that promises no mark is whole at its end",
      [...streams, { ...ends, promisesMark: false }],
      "end-client",
      "ok",
    ],
    ["a stream that breaks is cut", [...streams, breaks], "write-error-event end-client", "failed"],
    [
      "a stream whose time is over is cut",
      [...streams, { kind: "timed-out" }],
      "write-error-event end-client",
      "timeout",
    ],
    ["an engine's own error ends a stream as it is", [...streams, { kind: "engine-error" }], "end-client", "failed"],
    ["a stream that breaks and does not go on is cut", [...streams, severs], "write-error-event end-client", "failed"],
    ["a stream that breaks behind its mark does not go on", [...streams, marked, severs], "end-client", "ok"],
    ["an unread answer that breaks takes the connection with it", [...through, breaks], "destroy-client", "failed"],
    [
      "a stream that broke whole before it was passed on is whole",
      [...began("stream"), marked, breaks],
      "write-held end-client",
      "ok",
    ],
    [
      "a long answer is let through",
      [...began("whole"), { kind: "let-through" }, { kind: "first-bytes" }, { ...ends, promisesMark: false }],
      "end-client",
      "ok",
    ],
    [
      "a head without a body is an answer",
      [...began("through"), { ...ends, promisesMark: false }],
      "write-held end-client",
      "ok",
    ],
    ["a whole answer goes out at once", [...began("whole"), { ...ends, promisesMark: false }], "write-whole", "ok"],
    ["an engine without an answer is given up on", [...READ, { kind: "timed-out" }], "write-error", "timeout"],
    [
      "its own error is passed on",
      [...READ, { kind: "attempt-failed", fault: "status", kept: true }],
      "write-kept",
      "failed",
    ],
    [
      "behind a head that was shown the error is an event",
      [...began("stream"), { kind: "hold-over" }, breaks],
      "show-head write-error-event end-client",
      "failed",
    ],
    ["a defect before the head is answered", [...began("stream"), { kind: "defect" }], "write-refusal", "refused"],
    [
      "a client that stalls is cut off",
      [...streams, { kind: "client-stalled" }, { kind: "client-left" }],
      "report-client-stalled destroy-client forget report-client-left",
      "aborted",
    ],
    [
      "a defect behind it breaks the connection",
      [...streams, { kind: "defect" }, { kind: "client-left" }],
      "destroy-client forget report-client-left",
      "aborted",
    ],
  ];
  test("a stream that breaks goes on elsewhere, and again", () => {
    const goOn: readonly PathEvent[] = [severs, { kind: "first-token" }, { kind: "first-bytes" }];
    const request = played([...streams, ...goOn, ...goOn, marked, ends], [2]);
    const asked = request.log
      .map(({ kind }) => kind)
      .filter((kind) => kind === "ask-resume" || kind === "report-continued");
    assert.deepEqual(asked, ["ask-resume", "report-continued", "ask-resume", "report-continued"]);
    assert.equal(request.finish().outcome, "ok");
    assert.equal(request.run.state.attempts, 3);
    assertLawful(request);
    assertAnswered(request);
  });

  for (const [name, events, effects, outcome] of cases) {
    test(name, () => {
      const request = played(events, [0]);
      const firstBytes = events.some(({ kind }) => kind === "first-bytes");
      const seen = request.log.map(({ kind }) => kind).filter((kind) => WRITES.has(kind) || CLIENT.has(kind));
      assert.equal(seen.join(" "), firstBytes ? `write-held ${effects}` : effects);
      assert.equal(request.finish().outcome, outcome);
      assertLawful(request);
      assertAnswered(request);
    });
  }
});
