import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { ADMIT_ALL } from "#core/admission/admission-spec.ts";
import type { PathRules } from "#core/path/path-rules.ts";
import { SIMULATED_COUNTS, SIMULATED_TOTALS } from "#core/stages.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { GatewayCounters } from "#live/base/gateway-counters.ts";
import { LiveHost } from "./live-host.ts";
import { simulated } from "./simulated-host.ts";
import { GOING_ON, HEDGING, RULES } from "./twin-rules.ts";
import type { ScriptedEvent, TwinScript } from "./twin-script.ts";

const SECOND = MICROS_PER_SECOND;

/** Requests at an even pace, at times that nothing else happens at. */
function requests(count: number, everyMicros: number, outputTokens: number): TwinScript["requests"] {
  return Array.from({ length: count }, (_, i) => ({
    at: 1_003 + i * everyMicros,
    promptTokens: 16 + (i % 5) * 16,
    outputTokens: outputTokens + (i % 7),
  }));
}

const happens = (kind: ScriptedEvent["kind"], seconds: number, endpoint: string) =>
  ({ kind, at: Math.round(seconds * SECOND) + 7, endpoint }) as ScriptedEvent;

const sumOf = (counts: number | Readonly<Record<string, number>>): number =>
  typeof counts === "number" ? counts : Object.values(counts).reduce((sum, count) => sum + count, 0);

/** What the gateway counted of stages, as a simulation has it. */
function stageCounts(counters: GatewayCounters): object {
  const labelled = SIMULATED_COUNTS.map(([key]): [string, object] => [key, { ...counters[key] }]);
  const sums = SIMULATED_TOTALS.map(([key]): [string, number] => [key, sumOf(counters[key])]);
  return Object.fromEntries<object | number>([...labelled, ...sums]);
}

/** Both hosts through a script: every input and every decision, in order. */
async function compare(t: TestContext, script: TwinScript, kinds: readonly string[], rules: PathRules = RULES) {
  const twin = simulated(script, rules);
  for (const kind of kinds)
    assert.ok(
      twin.words.some((word) => word.startsWith(kind)),
      `the script has ${kind}`,
    );
  const live = new LiveHost(t, script, rules);
  let failure: unknown;
  try {
    let known = 0;
    await live.play(script, (at) => {
      while (known < twin.times.length && twin.times[known]! <= at) known++;
      return known;
    });
  } catch (error) {
    failure = error;
  }
  const first = live.words.all.findIndex((word, i) => word !== twin.words[i]);
  const about = `input ${first}: live ${live.words.all[first]}, simulated ${twin.words[first]}; ${String(failure)}`;
  await live.close();
  assert.deepEqual(
    first < 0 ? [] : live.words.all.slice(Math.max(0, first - 6), first + 3),
    first < 0 ? [] : twin.words.slice(Math.max(0, first - 6), first + 3),
    about,
  );
  assert.equal(failure, undefined);
  assert.equal(live.words.all.length, twin.words.length);
  const { counters } = live.gateway;
  assert.deepEqual(
    {
      faults: { ...counters.faults },
      retries: counters.retries,
      retriesDenied: counters.retriesDenied.budget,
      cuts: counters.cuts,
      timeouts: counters.timeouts,
      ...stageCounts(counters),
      moved: { lost: 0, hung: 0, asleep: 0, draining: 0, late: 0, ...counters.moved },
    },
    { ...twin.path, faults: { ...twin.path.faults } },
  );
  return twin;
}

test("leave, cordon, drain, refuse, cut", async (t) => {
  const script = {
    endpoints: 4,
    requests: requests(60, 100_000, 20),
    events: [
      happens("engine-refusing", 0.55, "a"),
      happens("engine-started", 1.55, "a"),
      happens("endpoint-cordoned", 1.75, "b"),
      happens("answers-cut", 2.15, "a"),
      happens("endpoint-uncordoned", 2.55, "b"),
      happens("engine-draining", 3.05, "c"),
      happens("endpoint-left", 4.05, "c"),
      happens("endpoint-left", 4.65, "d"),
    ],
  };
  const { ends } = await compare(t, script, [
    "attempt-failed",
    "request-retried",
    "endpoint-left",
    "endpoint-cordoned",
  ]);
  assert.ok(ends.cut > 0 && ends.completed > 50);
});

test("lost: killed under load, found out by requests, then by probes, back with an empty cache; back before it is missed", async (t) => {
  const script = {
    endpoints: 3,
    stepMicros: 60_000,
    requests: requests(95, 200_000, 10),
    events: [
      happens("engine-killed", 1.05, "a"),
      happens("engine-started", 9.05, "a"),
      happens("engine-killed", 14.05, "b"),
      happens("engine-started", 14.35, "b"),
    ],
  };
  const { ends, path } = await compare(t, script, ["endpoint-left a lost", "endpoint-joined a", "blocks-cleared b"]);
  assert.ok(ends.cut > 0 && path.retries > 0);
});

test("asleep: what has no byte goes elsewhere, begun answers go on when it wakes; all asleep, requests are refused", async (t) => {
  const script = {
    endpoints: 2,
    stepMicros: 60_000,
    requests: requests(80, 100_000, 13),
    events: [
      happens("engine-asleep", 1.55, "a"),
      happens("engine-awake", 4.05, "a"),
      happens("engine-asleep", 5.05, "a"),
      happens("engine-asleep", 5.15, "b"),
      happens("engine-awake", 7.05, "b"),
      happens("engine-awake", 27.05, "a"),
    ],
  };
  const { path, ends, words } = await compare(t, script, [
    "endpoint-slept a true true",
    "attempt-failed",
    "endpoint-slept a false",
    "endpoint-slept b true true",
    "endpoint-slept b false",
  ]);
  assert.ok(path.moved.asleep > 0);
  assert.ok(!words.some((word) => word.startsWith("endpoint-suspended")), "sleep is no sign of an engine that hangs");
  assert.deepEqual([path.cuts, ends.lost], [0, 0]);
  assert.ok(ends.unplaced > 10 && ends.completed + ends.unplaced === 80, JSON.stringify(ends));
});

test("hung: silent requests move, begun ones are cut, the endpoint is suspended and let back slowly", async (t) => {
  const script = {
    endpoints: 3,
    stepMicros: 100_000,
    requests: requests(150, 130_000, 12),
    events: [happens("engine-hung", 2.05, "a"), happens("engine-continued", 14.05, "a")],
  };
  const { path } = await compare(t, script, ["endpoint-suspended a", "endpoint-resumed a"]);
  assert.ok(path.moved.hung > 0 && path.cuts > 0);
});

test("all hang: whoever nobody else may serve is waited for, and goes on where it is or at whoever returns first", async (t) => {
  for (const [rules, goesOn] of [
    [RULES, false],
    [GOING_ON, true],
  ] as const) {
    const alone = {
      endpoints: 1,
      stepMicros: 100_000,
      requests: requests(30, 130_000, 40),
      events: [happens("engine-hung", 2.05, "a"), happens("engine-continued", 22.05, "a")],
    };
    const one = await compare(t, alone, ["endpoint-suspended a", "endpoint-resumed a"], rules);
    assert.deepEqual([one.path.cuts, one.path.timeouts, one.ends.completed], [0, 0, 30]);
    const together = {
      endpoints: 2,
      stepMicros: 100_000,
      requests: requests(30, 130_000, 40),
      events: [
        happens("engine-hung", 2.05, "a"),
        happens("engine-hung", 2.06, "b"),
        happens("engine-continued", 12.05, "b"),
        happens("engine-continued", 32.05, "a"),
      ],
    };
    const two = await compare(t, together, ["endpoint-suspended a", "endpoint-resumed b"], rules);
    assert.equal(two.path.timeouts, 0);
    // What cannot go on is cut once another engine may serve its client anew.
    if (!goesOn) assert.ok(two.path.cuts > 0);
    else assert.deepEqual([two.path.cuts, two.ends.completed, two.path.continuations > 0], [0, 30, true]);
  }
});

test("a draining engine ends what it makes; once it is silent, what it has goes on elsewhere at once", async (t) => {
  const script = {
    endpoints: 3,
    stepMicros: 100_000,
    requests: requests(60, 130_000, 24),
    events: [happens("engine-draining", 2.05, "a"), happens("engine-hung", 3.05, "a")],
  };
  const twin = await compare(t, script, ["request-continued", "attempt-failed"], GOING_ON);
  assert.deepEqual([twin.path.cuts, twin.ends.completed], [0, 60]);
  const went = twin.words.flatMap((word, i) => (word.startsWith("request-continued") ? [twin.times[i]! / SECOND] : []));
  assert.ok(went.length > 1 && Math.min(...went) > 4.05 && Math.max(...went) < 4.6, went.join());
});

test("what waits without a token where a fault brought it moves to endpoints that are back, and none waits in vain", async (t) => {
  const script: TwinScript = {
    endpoints: 3,
    stepMicros: 100_000,
    sequencesMax: 4,
    requests: requests(12, 71_003, 300),
    events: [
      happens("engine-hung", 3.05, "a"),
      happens("engine-hung", 3.06, "b"),
      happens("engine-continued", 14.05, "a"),
      happens("engine-continued", 14.06, "b"),
    ],
  };
  const twin = await compare(t, script, ["endpoint-suspended b", "request-continued #0 saturated"], GOING_ON);
  assert.deepEqual([twin.ends.completed, twin.path.cuts, twin.path.timeouts], [12, 0, 0]);
  assert.equal(twin.path.moved.late, 8, "all that waited at the endpoint that was left");
  const lastToken = twin.words.findLastIndex((word) => word.startsWith("first-token"));
  const since = twin.words.findIndex((word) => word.startsWith("endpoint-resumed b"));
  const seconds = (twin.times[lastToken]! - twin.times[since]!) / SECOND;
  assert.ok(seconds < 5, `${seconds} s from the return of an endpoint until all have a token`);
});

test("vanished: connections stay open and nobody answers; requests leave once it is lost", async (t) => {
  const script = {
    endpoints: 3,
    requests: requests(100, 130_000, 60),
    // A request has just come there and has no token yet.
    events: [happens("engine-vanished", 2.216, "a")],
  };
  const { path } = await compare(t, script, ["endpoint-left a lost"]);
  assert.ok(path.moved.lost > 0 && path.cuts > 0);
});

test("the whole fleet: retries run out of attempts, then of budget", async (t) => {
  const script = {
    endpoints: 4,
    requests: requests(40, 130_000, 20),
    events: ["a", "b", "c", "d"].map((endpoint, i) => happens("engine-killed", 1 + i / 10, endpoint)),
  };
  const { path, ends } = await compare(t, script, ["attempt-failed"]);
  assert.ok(path.retriesDenied > 0 && ends.lost > 0);
});

test("admission: limits refuse, a full pool lets wait in turn, and goes on when an endpoint is back", async (t) => {
  const forever = 1e15;
  const script: TwinScript = {
    endpoints: 2,
    admission: {
      ...ADMIT_ALL,
      limits: {
        rate: { type: "rate-limit", requestsMax: 12, windowMicros: 2 * SECOND, per: "tenant", onLimit: "reject" },
        cap: { type: "hard-cap", requestsMax: 5, onLimit: "delay", retryMicros: forever },
      },
      saturation: { waitingMax: 1e6, kvUtilizationMax: 1, requestsMax: 3 },
      queue: {
        requestsMax: 5,
        promptTokensMax: 1e9,
        ttlMicros: forever,
        waitAt: 1,
        fairness: "least-served",
        inputWeight: 1,
        outputWeight: 2,
        shares: {},
        emptyPool: { requestsMax: 0, ttlMicros: forever, models: [] },
      },
    },
    requests: requests(60, 71_003, 40),
    events: [
      happens("endpoint-cordoned", 1.6, "a"),
      happens("endpoint-uncordoned", 2.4, "a"),
      happens("endpoint-cordoned", 3.1, "b"),
    ],
  };
  const { words, ends } = await compare(t, script, ["request-released", "endpoint-uncordoned"]);
  const has = (text: string): boolean => words.some((word) => word.includes(text));
  for (const text of [
    "queued nobody by saturated",
    "queued nobody by hard-cap",
    "rejected nobody by rate-limit",
    "rejected nobody by queue-full",
  ])
    assert.ok(has(text), text);
  assert.ok(ends.completed > 20 && ends.rejected > 5, JSON.stringify(ends));
});

test("late first tokens are asked for at a second engine: it answers first, or the first one does, or one of both fails", async (t) => {
  const script = {
    endpoints: 4,
    requests: requests(120, 90_000, 20),
    events: [
      happens("engine-hung", 1.05, "a"),
      happens("engine-continued", 2.25, "a"),
      // Two that stand still, and nobody else: whoever goes on first.
      happens("endpoint-cordoned", 4.045, "c"),
      happens("endpoint-cordoned", 4.046, "d"),
      happens("engine-hung", 4.055, "a"),
      happens("engine-hung", 4.056, "b"),
      happens("engine-continued", 4.955, "a"),
      happens("engine-continued", 5.155, "b"),
      happens("endpoint-uncordoned", 5.165, "c"),
      happens("endpoint-uncordoned", 5.166, "d"),
      // The second one dies before its first token.
      happens("engine-hung", 7.05, "a"),
      happens("engine-killed", 7.757, "b"),
      happens("engine-continued", 8.05, "a"),
      // The first one dies without a token, when the second one has had the request for a while.
      ...["a", "c", "d"].map((endpoint) => happens("engine-hung", 9.096, endpoint)),
      happens("endpoint-cordoned", 9.0965, "a"),
      happens("engine-killed", 9.9, "a"),
      happens("engine-continued", 9.95, "c"),
      happens("engine-continued", 9.96, "d"),
    ],
  };
  const { path, ends } = await compare(t, script, ["request-hedged", "hedge-settled"], HEDGING);
  const { won = 0, lost = 0, failed = 0, "took-over": tookOver = 0 } = path.hedges;
  assert.ok(won > 0 && lost > 0 && failed > 0 && tookOver > 0, JSON.stringify(path));
  assert.ok((path.hedgesDenied["budget"] ?? 0) > 0, "the budget holds");
  assert.ok(won + lost + failed + tookOver <= 3 + 0.1 * 120);
  assert.ok(ends.completed > 100, JSON.stringify(ends));
});

test("answers that break go on elsewhere: cut, killed, hung", async (t) => {
  const script = {
    endpoints: 4,
    stepMicros: 60_000,
    requests: requests(90, 130_000, 20),
    events: [
      happens("answers-cut", 1.05, "a"),
      happens("engine-killed", 2.05, "b"),
      happens("engine-hung", 4.05, "c"),
      happens("engine-started", 8.05, "b"),
      happens("answers-cut", 9.15, "d"),
      // Not a whole number of steps later: what went on at "a" with the cut before makes its tokens then.
      happens("answers-cut", 9.357, "a"),
    ],
  };
  const { path, ends } = await compare(t, script, ["request-continued", "endpoint-suspended c"], GOING_ON);
  assert.ok(path.continuations > 8, `${path.continuations} went on`);
  assert.deepEqual([ends.cut, ends.completed], [0, 90]);
});

test("prompts computed elsewhere: handed over, either engine killed, answers cut", async (t) => {
  const script: TwinScript = {
    endpoints: 5,
    roles: ["prefill", "prefill", "decode", "decode", "decode"],
    requests: requests(60, 67_000, 60),
    events: [
      happens("engine-killed", 0.822, "a"),
      happens("answers-cut", 1.242, "d"),
      happens("engine-killed", 1.742, "c"),
      happens("engine-started", 2.942, "a"),
    ],
  };
  const kinds = ["prefill-finished", "prefill-failed", "request-retried", "request-continued"];
  const { ends, path } = await compare(t, script, kinds, GOING_ON);
  assert.deepEqual([ends.cut, ends.completed], [0, 60]);
  assert.ok(path.retries > 0 && path.continuations > 3);
});
