import assert from "node:assert/strict";
import { test } from "node:test";
import { type FaultEvent, FaultLog, LINES_PER_WINDOW_MAX, WINDOW_MILLIS } from "#live/log/fault-log.ts";

interface Line {
  readonly level: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

function underTest() {
  const lines: Line[] = [];
  const clock = { millis: 0 };
  const log = new FaultLog({
    write: (level, fields, message) => lines.push({ level, fields, message }),
    nowMillis: () => clock.millis,
  });
  return { lines, clock, log };
}

function cut(endpoint: string): FaultEvent {
  return { kind: "answer-cut", endpoint, requestId: "r", detail: "socket closed", done: "the client was notified" };
}

test("a fault is one line with its level, what happened and what was done", () => {
  const { lines, log } = underTest();
  log.report({ ...cut("a"), figures: { outputTokens: 7 } });
  log.close();
  assert.deepEqual(lines, [
    {
      level: "warn",
      fields: {
        event: "answer-cut",
        endpoint: "a",
        requestId: "r",
        detail: "socket closed",
        done: "the client was notified",
        outputTokens: 7,
      },
      message: "an answer was cut after the client got a part of it",
    },
  ]);
});

test("a storm is a bounded number of lines, then one that counts the rest by endpoint", () => {
  const { lines, clock, log } = underTest();
  for (let i = 0; i < 1_000; i++) {
    clock.millis = i;
    log.report(cut(i % 4 === 0 ? "a" : "b"));
  }
  log.report({ kind: "breaker-open", endpoint: "a", detail: "3 failures", done: "left alone for 1 s" });
  assert.equal(lines.length, LINES_PER_WINDOW_MAX + 1, "another kind has lines of its own");
  const withheld = 1_000 - LINES_PER_WINDOW_MAX;
  assert.equal(log.withheld["answer-cut"], withheld);
  clock.millis = WINDOW_MILLIS;
  log.report(cut("a"));
  const [summary, next] = lines.slice(-2);
  assert.deepEqual(summary?.fields, {
    event: "answer-cut",
    withheld,
    windowMillis: WINDOW_MILLIS,
    byEndpoint: { b: 735, a: 245 },
  });
  assert.equal(next?.fields["detail"], "socket closed", "a new window begins with lines");
});

test("what is only counted is written at the end, and a name or text has a bound", () => {
  const { lines, log } = underTest();
  for (let i = 0; i < 500; i++) log.report({ ...cut(`e${i}`), detail: "x".repeat(5_000) });
  log.close();
  const last = lines.at(-1)!;
  assert.equal(last.fields["withheld"], 500 - LINES_PER_WINDOW_MAX);
  assert.equal(Object.keys(last.fields["byEndpoint"] as object).length, 8);
  assert.equal((lines[0]!.fields["detail"] as string).length, 300);
});

test("the summary of a storm comes by itself when the window is over", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { lines, clock, log } = underTest();
  for (let i = 0; i <= LINES_PER_WINDOW_MAX; i++) log.report(cut("a"));
  clock.millis = WINDOW_MILLIS;
  t.mock.timers.tick(WINDOW_MILLIS);
  assert.equal(lines.at(-1)?.fields["withheld"], 1);
});
