import assert from "node:assert/strict";
import { test } from "node:test";

import type { EngineCaller } from "#live/beside/engine-caller.ts";
import { ServingChecks } from "#live/beside/serving-checks.ts";
import { newCounters } from "#live/base/gateway-counters.ts";
import type { EndpointEntry } from "#live/endpoints/endpoint-directory.ts";

type Answered = number | "breaks";

/** Engines that answer one question after another, when they are let. */
function startAsked() {
  const waiting: ((answered: Answered) => void)[] = [];
  const calls: string[] = [];
  const call = (entry: EndpointEntry): Promise<unknown> => {
    calls.push(entry.url);
    return new Promise((resolve, reject) => {
      waiting.push((answered) => {
        if (answered === "breaks") reject(new Error("reset"));
        else resolve({ statusCode: answered, body: { on: () => ({ resume: () => {} }) } });
      });
    });
  };
  const counters = newCounters();
  const checks = new ServingChecks({ call } as unknown as EngineCaller, counters);
  const answer = async (answered: Answered): Promise<void> => {
    waiting.shift()!(answered);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { checks, calls, counters, answer };
}

const A = { id: "a", url: "http://a" } as EndpointEntry;
const B = { id: "b", url: "http://b" } as EndpointEntry;

test("what is asked while an engine is asked waits for one question more, which all share", async () => {
  const { checks, calls, counters, answer } = startAsked();
  const first = checks.ask(A);
  const others = [checks.ask(A), checks.ask(A), checks.ask(A)];
  const another = checks.ask(B);
  assert.deepEqual(calls, [A.url, B.url]);
  await answer(200);
  assert.equal(await first, true);
  // Only an answer to a question that was asked behind an end proves something of it.
  assert.deepEqual(calls, [A.url, B.url, A.url]);
  await answer(200);
  assert.equal(await another, true);
  await answer(500);
  assert.deepEqual(await Promise.all(others), [false, false, false]);
  assert.deepEqual(counters.servingChecks, { serves: 2, ends: 1 });
  const last = checks.ask(A);
  assert.equal(calls.length, 4);
  await answer(200);
  assert.equal(await last, true);
});

test("an engine is asked again where its connection broke, and no third time", async () => {
  const { checks, calls, answer } = startAsked();
  const seconds: readonly (readonly [Answered, boolean])[] = [
    [499, true],
    [500, false],
    ["breaks", false],
  ];
  for (const [second, serves] of seconds) {
    calls.length = 0;
    const asked = checks.ask(A);
    await answer("breaks");
    await answer(second);
    assert.equal(await asked, serves);
    assert.equal(calls.length, 2);
  }
});
