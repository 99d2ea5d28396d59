import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import type { Input } from "#core/input/input.ts";
import type { AwaitedRequests } from "#shadow/rollout/awaited-requests.ts";
import { PredictionWindow } from "#shadow/rollout/prediction-window.ts";
import { request } from "../../core/state.ts";
import { HEADER } from "../../trace/trace-samples.ts";
import { caseEndpoints, caseSetting } from "../question/what-if-case.ts";

const SECOND = 1_000_000;
const ENDPOINTS = caseEndpoints("a", "b", "c", "d", "e", "f", "g", "h");
const HEADER_HERE = { ...HEADER, endpoints: ENDPOINTS };
/** How long answers take: most 4 s, one in fifty 8 s. */
const [USUAL, LONG] = [4 * SECOND, 8 * SECOND];

interface Figures {
  readonly predicted: number;
  /** Those that the window did not have. */
  readonly without: number;
  readonly waiting: number;
}

/** So many requests a second for a while, of which every five seconds is predicted what waits. */
function predictedAt(perSecond: number, seconds: number, bytesMax: number): Figures {
  const window = new PredictionWindow({ requestsMin: 50, bytesMax });
  window.begin(HEADER_HERE);
  const inputs: Input[] = [];
  for (let i = 0; i < perSecond * seconds; i++) {
    const at = Math.round((i * SECOND) / perSecond);
    const end = at + (i % 50 === 0 ? LONG : USUAL);
    const requestId = `r${i}`;
    const counts = { promptTokens: 67, cachedTokens: 0, outputTokens: 8 };
    inputs.push({ kind: "request-arrived", at, request: request({ id: requestId }) });
    inputs.push({ kind: "request-finished", at: end, requestId, outcome: "ok", ...counts });
  }
  const waiting = new Map<string, number>();
  let [predicted, without, nextAt] = [0, 0, 5 * SECOND];
  for (const input of inputs.toSorted((one, other) => one.at - other.at)) {
    window.take(input, "a");
    if (input.kind === "request-finished") waiting.set(input.requestId, input.at);
    if (input.at < nextAt) continue;
    nextAt += 5 * SECOND;
    const awaited: AwaitedRequests = {
      rollout: "try",
      control: { name: "gnomon", spec: loadProfile("gnomon").spec },
      isShared: false,
      requests: [...waiting],
    };
    window.awaits([awaited]);
    const setting = { ...caseSetting([]), endpoints: ENDPOINTS };
    for (const { requests } of window.predictions(1, ({ workload }) => ({ ...setting, workload })))
      for (const [id, ttft, , e2e] of requests) {
        waiting.delete(id);
        if (ttft === null || e2e === null) without++;
        else predicted++;
      }
  }
  return { predicted, without, waiting: waiting.size };
}

test("all that waits is predicted at ten times the requests that a window has at least, while answers take 8 s", () => {
  for (const perSecond of [5, 50]) {
    const { predicted, without, waiting } = predictedAt(perSecond, 40, 1e9);
    assert.equal(without, 0, `${perSecond} a second: ${predicted} predicted`);
    // Those of the last 8 s, and of five more since the last time.
    assert.ok(predicted > 20 * perSecond, `${perSecond} a second: ${predicted} predicted`);
    assert.ok(waiting < 15 * perSecond, `${waiting}`);
  }
});

test("where there is no room for as many, what is left out waits no longer", () => {
  const { predicted, without, waiting } = predictedAt(50, 40, 250_000);
  assert.ok(without > predicted, `${without} without, ${predicted} with`);
  assert.ok(waiting < 15 * 50, `${waiting}`);
});

test("nothing is predicted before a trace began, of too few requests, or twice", () => {
  const window = new PredictionWindow({ requestsMin: 10, bytesMax: 1e6 });
  const setting = caseSetting([]);
  const predictions = (requestsMin: number) =>
    window.predictions(requestsMin, ({ workload }) => ({ ...setting, workload })).flatMap(({ requests }) => requests);
  const ask = (id: string, at: number) => {
    const counts = { promptTokens: 67, cachedTokens: 0, outputTokens: 8 };
    window.take({ kind: "request-arrived", at, request: request({ id }) }, "a");
    const input = { kind: "request-finished", at: at + SECOND, requestId: id, outcome: "ok", ...counts } as const;
    window.take(input, "a");
  };
  const awaits = (...ids: readonly (readonly [string, number])[]) =>
    window.awaits([{ rollout: "try", control: { name: "gnomon" }, isShared: false, requests: ids }]);
  awaits(["a", SECOND]);
  assert.deepEqual(predictions(1), []);
  window.begin(HEADER);
  ask("a", 0);
  ask("b", 10 * SECOND);
  assert.deepEqual(predictions(3), []);
  assert.deepEqual(
    predictions(2).map(([id]) => id),
    ["a"],
  );
  assert.deepEqual(predictions(2), []);
  awaits(["b", 11 * SECOND]);
  assert.deepEqual(predictions(2), []);
  ask("c", 20 * SECOND);
  awaits(["b", 11 * SECOND]);
  assert.deepEqual(
    predictions(2).map(([id]) => id),
    ["b"],
  );
});
