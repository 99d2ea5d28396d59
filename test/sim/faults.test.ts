import assert from "node:assert/strict";
import { test } from "node:test";
import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { PATH_RULES } from "#core/path/path-rules.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { EngineEvent } from "#sim/fleet/engine-event.ts";
import { simulate } from "#sim/simulate.ts";
import type { SimulatedStage, StagedOptions } from "#sim/path/stage-performer.ts";
import type { ScriptEvent, SimulationOptions } from "#sim/setting/simulation-options.ts";
import { type ListedArrival, ListedArrivals } from "../../bench/simulate/listed-arrivals.ts";
import { cluster, engines, listed, ROUND_ROBIN } from "./cluster.ts";

const SECOND = MICROS_PER_SECOND;
/** Answers that break are cut; those that go on have a file of their own. */
const CUTS = {
  ...PATH_RULES,
  settings: { continuationsMax: 0 },
  waits: { ...PATH_RULES.waits, cutMicrosMax: 10 * SECOND },
};
/** Every step takes 10 ms. */
const STEP = { kind: "coefficients", baseMicros: 10_000, perPrefillTokenMicros: 0, perDecodeMicros: 0 } as const;

const happens = (kind: EngineEvent["kind"], at: number, engine: number): EngineEvent => ({
  kind,
  at,
  endpoint: `engine_00${engine}`,
});

/** Runs a script over two engines, or `count`; what the router got to know, a word an input. */
function play(
  arrivals: readonly ListedArrival[],
  fleetEvents: readonly ScriptEvent[],
  overrides: Partial<SimulationOptions> = {},
  count = 2,
) {
  const inputs: Input[] = [];
  const words: string[] = [];
  const observe = (input: Input, decision: Decision | undefined) => {
    inputs.push(input);
    if (input.kind === "load-observed") return;
    const about = "requestId" in input ? input.requestId : input.kind === "request-arrived" ? input.request.id : "";
    const what =
      "endpoint" in input ? (typeof input.endpoint === "string" ? input.endpoint : input.endpoint.id) : about;
    const detail = "fault" in input ? ` ${input.fault}` : "outcome" in input ? ` ${input.outcome}` : "";
    words.push(`${input.kind} ${what}${detail}${decision?.kind === "routed" ? ` ${decision.endpoint}` : ""}`);
  };
  const result = simulate(
    cluster(ROUND_ROBIN, engines(count, { stepTime: STEP }), {
      arrivals: new ListedArrivals(arrivals),
      fleetEvents,
      observe,
      rules: CUTS,
      ...overrides,
    }),
  );
  return {
    ...result,
    inputs,
    words: words.filter((word) => !word.startsWith("endpoint-joined") || word.includes("0s")),
  };
}

/** Kinds of inputs in order, loads left out. */
const kinds = (inputs: readonly Input[]): string[] =>
  inputs.map(({ kind }) => kind).filter((kind) => kind !== "load-observed" && kind !== "progress");

test("a killed engine: what had no token is tried elsewhere, what had is cut, its cache and its requests are gone", () => {
  // Requests 0 and 2 go to engine 0: the first has tokens when it dies, the third waits for its own.
  const arrivals = [listed(0, 0, 10, 50), listed(1, 0, 10, 50), listed(2, 101_000, 10, 50)];
  const { words, requests, path, outcomes } = play(arrivals, [happens("engine-killed", 105_000, 0)]);
  assert.deepEqual(requests.completed, 2);
  assert.deepEqual(requests.cut, 1);
  assert.deepEqual(path, {
    faults: { cut: 1 },
    retries: 1,
    retriesDenied: 0,
    moved: { lost: 0, hung: 0, asleep: 0, draining: 0, late: 0 },
    hedges: {},
    hedgesDenied: {},
    continuations: 0,
    cuts: 1,
    timeouts: 0,
  });
  assert.deepEqual(words.slice(4, 8), [
    "request-arrived request_2 engine_000",
    "request-finished request_0 failed",
    "attempt-failed request_2 cut",
    "request-retried request_2 engine_001",
  ]);
  assert.deepEqual([...outcomes.attempts], [1, 1, 2]);
  assert.ok(outcomes.ttft[2]! > 4_000);
});

test("while a stage puts a retry off a limit of time ends the request, and the stage gets to know", () => {
  const ended: string[] = [];
  /** Puts every retry off for good. */
  const never = (): SimulatedStage => ({
    arrived: (flight) =>
      flight.hasStage({
        takesOver: (fault) => {
          flight.path.attemptFailed(fault);
          return "later";
        },
        ended: (outcome) => void ended.push(outcome),
      }),
    holds: () => false,
    figures: () => ({ name: "never", figures: {} }),
  });
  const rules = { ...CUTS, waits: { ...CUTS.waits, firstByteMicrosMax: 5 * SECOND } };
  const arrivals = [listed(0, 0, 10, 50), listed(1, 0, 10, 50), listed(2, 101_000, 10, 50)];
  const staged: Partial<StagedOptions> = { rules, stages: [never] };
  const { words, requests, path } = play(arrivals, [happens("engine-killed", 105_000, 0)], staged);
  assert.deepEqual([requests.completed, requests.cut, path.retries, path.timeouts], [1, 1, 0, 1]);
  assert.deepEqual(
    words.filter((word) => word.includes("request_2")),
    ["request-arrived request_2 engine_000", "attempt-failed request_2 cut", "request-finished request_2 timeout"],
  );
  assert.deepEqual(ended.sort(), ["failed", "ok", "timeout"]);
});

test("nobody accepts a connection: each request finds out, until the endpoint is lost; it joins again with an empty cache", () => {
  const arrivals = Array.from({ length: 100 }, (_, i) => listed(i, i * 200_000, 64, 3));
  const script = [happens("engine-killed", 2 * SECOND, 0), happens("engine-started", 12 * SECOND, 0)];
  const { inputs, requests, path, endpoints } = play(arrivals, script);
  assert.equal(requests.completed, 100);
  assert.ok(path.faults.connect! >= 3, "the breaker lets some through");
  assert.deepEqual(path.faults, { connect: path.retries - 1, cut: 1 });
  const left = inputs.find(({ kind }) => kind === "endpoint-left");
  const again = inputs.findLast(({ kind }) => kind === "endpoint-joined");
  assert.ok(left?.kind === "endpoint-left" && left.lost === true && again !== undefined);
  assert.ok(left.at >= 7 * SECOND && left.at <= 9 * SECOND, `lost at ${left.at}`);
  assert.ok(again.at >= 12 * SECOND && again.at <= 18 * SECOND, `back at ${again.at}`);
  assert.equal(endpoints.length, 2, "it is the same endpoint");
});

test("who is back before it was missed has an empty cache, which its counters say", () => {
  const arrivals = Array.from({ length: 50 }, (_, i) => listed(0, i * 100_000, 64, 3)).map((one, i) => ({
    ...one,
    route: { ...one.route, id: `request_${i}` },
  }));
  const script = [happens("engine-killed", 2 * SECOND, 0), happens("engine-started", 2.3 * SECOND, 0)];
  const { inputs, outcomes } = play(arrivals, script, {}, 1);
  const at = kinds(inputs).indexOf("blocks-cleared");
  assert.ok(at > 0);
  assert.ok(!kinds(inputs).includes("endpoint-left"));
  const served = [...outcomes.cachedTokens].filter(
    (_, row) => outcomes.isCompleted(row) && outcomes.arrivalAt[row]! > 2 * SECOND,
  );
  assert.equal(served[0], 0, "the first after the restart finds nothing");
  assert.ok(served.slice(1).every((tokens) => tokens === 48));
});

test("a hung engine stops its clock: silent ones move, begun ones are cut, and it is let back when it goes on", () => {
  const arrivals = Array.from({ length: 150 }, (_, i) => listed(i, i * 200_000, 10, 40));
  const script = [happens("engine-hung", 3.05 * SECOND, 0), happens("engine-continued", 20.005 * SECOND, 0)];
  const { inputs, requests, path } = play(arrivals, script);
  assert.equal(requests.completed + requests.cut, 150);
  assert.ok(path.moved.hung > 5, `${path.moved.hung} moved`);
  assert.equal(path.faults.hung, path.moved.hung);
  assert.equal(path.cuts, requests.cut);
  assert.ok(requests.cut >= 1);
  const suspended = inputs.find(({ kind }) => kind === "endpoint-suspended")!;
  const resumed = inputs.find(({ kind }) => kind === "endpoint-resumed")!;
  assert.ok(suspended.at > 8 * SECOND && suspended.at < 14 * SECOND, `${suspended.at}`);
  assert.ok(resumed.at > 20 * SECOND && resumed.at < 25 * SECOND, `${resumed.at}`);
  // In between nothing new goes there.
  const engine0 = inputs.filter(
    (input) => input.kind === "request-arrived" && input.at > suspended.at && input.at < resumed.at,
  );
  assert.ok(engine0.length > 20);
});

test("an engine that stood still for a while goes on where it stood", () => {
  const { outcomes } = play(
    [listed(0, 0, 10, 50)],
    [happens("engine-hung", 105_000, 0), happens("engine-continued", 1_105_000, 0)],
  );
  assert.equal(outcomes.statusOf(0), "completed");
  assert.equal(outcomes.e2e[0], 500_000 + 1_000_000);
  const alone = play([listed(0, 0, 10, 50)], []);
  assert.equal(alone.outcomes.e2e[0], 500_000);
});

test("a client gives up at its own time, whatever its engine's clock does", () => {
  const impatient = { ...listed(0, 0, 10, 500), deadlineAt: 2 * SECOND };
  const { outcomes, words } = play(
    [impatient],
    [happens("engine-hung", 105_000, 0), happens("engine-continued", 9 * SECOND, 0)],
    {},
    1,
  );
  assert.equal(outcomes.statusOf(0), "timed-out");
  assert.equal(words.at(-1), "request-finished request_0 aborted");
});

test("a draining engine ends what it has and turns down what comes; a refusing one is left alone for a moment", () => {
  const arrivals = Array.from({ length: 20 }, (_, i) => listed(i, i * 100_000, 10, 60));
  const draining = play(arrivals, [happens("engine-draining", 550_000, 0)]);
  assert.equal(draining.requests.completed, 20);
  assert.ok(draining.path.faults.draining! >= 1);
  assert.equal(draining.path.cuts, 0);
  const refusing = play(arrivals, [happens("engine-refusing", 550_000, 0), happens("engine-started", 1_550_000, 0)]);
  assert.equal(refusing.requests.completed, 20);
  assert.ok(refusing.path.faults.saturated! >= 2);
});

test("answers that are cut leave an engine that goes on", () => {
  const { requests, path } = play(
    [listed(0, 0, 10, 50), listed(1, 0, 10, 50), listed(2, 300_000, 10, 5)],
    [happens("answers-cut", 105_000, 0)],
  );
  assert.deepEqual([requests.cut, requests.completed, path.cuts], [1, 2, 1]);
});

test("attempts are limited, and so is the budget that all requests share", () => {
  const killed = [0, 1, 2, 3].map((engine) => happens("engine-killed", 1_000, engine));
  const one = play([listed(0, 2_000, 10, 5)], killed, {}, 4);
  assert.deepEqual(
    [one.requests.lost, one.path.faults.connect, one.path.retries],
    [1, 3, 2],
    "three attempts at four endpoints",
  );
  const rules = { ...PATH_RULES, settings: { attemptsMax: 3, continuationsMax: 0, retryRatio: 0, retryBurst: 1 } };
  const arrivals = Array.from({ length: 6 }, (_, i) => listed(i, 2_000 + i, 10, 5));
  const two = play(arrivals, [happens("engine-killed", 1_000, 0)], { rules }, 2);
  assert.deepEqual([two.path.retries, two.path.retriesDenied, two.requests.lost], [1, 2, 2]);
});

test("a machine that vanishes keeps its connections: requests leave it once it is lost", () => {
  const arrivals = Array.from({ length: 60 }, (_, i) => listed(i, i * 200_000, 10, 40));
  const { requests, path, inputs } = play(arrivals, [happens("engine-vanished", 3.05 * SECOND, 0)]);
  assert.equal(requests.completed + requests.cut, 60);
  assert.ok(kinds(inputs).includes("endpoint-left"));
  assert.equal(path.cuts, requests.cut);
  assert.ok(requests.cut >= 1);
});

test("what a trace recorded of a lost endpoint ends what it has; what merely left goes on", () => {
  const arrivals = [listed(0, 0, 10, 50), listed(1, 0, 10, 50)];
  const left = { kind: "endpoint-left", at: 105_000, endpoint: "engine_000" } as const;
  assert.equal(play(arrivals, [left]).requests.completed, 2);
  assert.deepEqual(play(arrivals, [{ ...left, lost: true }]).requests.cut, 1);
});

test("faults are as deterministic as everything else", () => {
  const arrivals = Array.from({ length: 200 }, (_, i) => listed(i, i * 50_000, 40, 30));
  const script = [
    happens("engine-killed", SECOND, 0),
    happens("engine-hung", 2 * SECOND, 1),
    happens("engine-started", 4 * SECOND, 0),
    happens("engine-continued", 9 * SECOND, 1),
    happens("answers-cut", 9.5 * SECOND, 2),
  ];
  assert.deepEqual(play(arrivals, script, {}, 3).inputs, play(arrivals, script, {}, 3).inputs);
});

test("a recorded sleep is one in a simulation: nobody goes there meanwhile, and the cache is gone where it was given up", () => {
  const endpoint = "engine_000";
  const slept = (seconds: number, asleep: boolean, emptied: boolean): ScriptEvent => ({
    kind: "endpoint-slept",
    at: seconds * SECOND,
    endpoint,
    asleep,
    ...(emptied && { emptied: true }),
  });
  // One prompt again and again, at one engine.
  const arrivals = Array.from({ length: 40 }, (_, i) => listed(0, i * 100_000 + 50_000, 64, 3)).map((one, i) => ({
    ...one,
    route: { ...one.route, id: `r${i}` },
  }));
  const cachedAfter = (emptied: boolean): number => {
    const { requests, outcomes } = play(arrivals, [slept(1, true, emptied), slept(2, false, false)], {}, 1);
    assert.deepEqual([requests.unplaced, requests.completed], [10, 30]);
    return [...outcomes.cachedTokens].find((_, row) => outcomes.arrivalAt[row]! > 2 * SECOND)!;
  };
  assert.deepEqual([cachedAfter(true), cachedAfter(false)], [0, 48]);
});
