import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { objectiveSentence } from "#cli/what-if/objective-sentence.ts";
import type { WhatIfAnswer } from "#shadow/question/what-if.ts";

interface Made {
  readonly name: string;
  readonly p99: number;
  readonly spread?: number;
  readonly scenario?: string;
  readonly goodput?: number;
}

/** An answer of which only what the sentence reads is there. */
function answer(...made: Made[]): WhatIfAnswer {
  const candidates = made.map(({ name, p99, spread, scenario = "", goodput }) => ({
    name,
    scenario,
    goodput,
    predicted: { ttftMicros: { p99: 1_000 * p99 } },
    intervals: {
      ttftMicros:
        spread === undefined
          ? undefined
          : { p99: { expected: 1_000 * p99, low: 1_000 * (p99 - spread), high: 1_000 * (p99 + spread) } },
    },
  }));
  return { inForce: "now", candidates } as unknown as WhatIfAnswer;
}

const sentence = (...made: Made[]) => objectiveSentence(answer(...made), "ttft-p99");

test("what is in force stays where nothing is better, and the engines are named as the limit where more of them help", () => {
  const now = { name: "now", p99: 500, spread: 10 };
  assert.equal(
    sentence(now, { name: "b", p99: 498, spread: 10 }),
    "now stays best: p99 TTFT is 500 ms under now, and none of 1 others has less. If that is too much, ask about more engines: --endpoints.",
  );
  assert.equal(
    sentence(now, { name: "b", p99: 700 }, { name: "now, 5 endpoints", p99: 200, scenario: "5 endpoints" }),
    "now stays best: p99 TTFT is 500 ms under now, and none of 1 others has less. The engines are the limit: with 5 endpoints p99 TTFT would be 200 ms.",
  );
  assert.match(sentence(now), /^now stays best: .* no other profile was asked about/);
});

test("a better one is called so beyond both intervals alone", () => {
  assert.equal(
    sentence({ name: "now", p99: 500, spread: 50 }, { name: "b", p99: 300, spread: 50 }),
    "b is better: p99 TTFT of 300 ms in place of 500 ms under now, beyond both intervals.",
  );
  assert.match(
    sentence({ name: "now", p99: 500, spread: 120 }, { name: "b", p99: 300, spread: 120 }),
    /^b may be .* overlap/,
  );
  assert.match(
    sentence({ name: "now", p99: 500 }, { name: "b", p99: 300 }),
    /^b may be better: .* no intervals around both/,
  );
});

test("of goodput more is better", () => {
  const of = (...made: Made[]) => objectiveSentence(answer(...made), "goodput");
  assert.match(
    of({ name: "now", p99: 1, goodput: 0.7 }, { name: "b", p99: 1, goodput: 0.9 }),
    /^b .* goodput of 90.* in place of 70/,
  );
  assert.match(
    of({ name: "now", p99: 1, goodput: 0.9 }, { name: "b", p99: 1, goodput: 0.7 }),
    /none of 1 others has more/,
  );
});

test("whatever the figures, nothing with a worse one is recommended", () => {
  const figure = fc.integer({ min: 1, max: 10_000 });
  fc.assert(
    fc.property(
      figure,
      fc.array(fc.record({ p99: figure, spread: fc.integer({ min: 0, max: 500 }) }), { maxLength: 5 }),
      (p99, others) => {
        const made = others.map((one, i) => ({ name: `c${i}`, ...one }));
        const [first = ""] = sentence({ name: "now", p99, spread: 100 }, ...made).split(" ");
        const chosen = made.find(({ name }) => name === first);
        const least = Math.min(...made.map((one) => one.p99));
        if (chosen === undefined) assert.ok(least >= 0.989 * p99 || made.length === 0);
        else assert.ok(chosen.p99 === least && chosen.p99 < p99);
      },
    ),
  );
});

test("sessions are compared by how long the whole of each took", () => {
  const candidates = ["now", "b"].map((name, i) => ({
    name,
    scenario: "",
    sessions: { mean: (i === 0 ? 9_000 : 6_000) * 1_000 },
    predicted: {},
    intervals: {},
  }));
  const text = objectiveSentence({ inForce: "now", candidates } as unknown as WhatIfAnswer, "session-mean");
  assert.match(text, /^b may be better: mean session completion time of 6,?000 ms in place of 9,?000 ms under now/);
});
