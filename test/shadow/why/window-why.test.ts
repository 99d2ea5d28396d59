import assert from "node:assert/strict";
import { test } from "node:test";
import { finished } from "#core/base/finished.ts";
import { RunBook } from "#shadow/recorded/recorded-run.ts";
import { recordedSetting } from "#shadow/candidate/recorded-setting.ts";
import { simulationOf } from "#shadow/candidate/candidate.ts";
import { WindowWhy } from "#shadow/why/window-why.ts";
import { Simulation } from "#sim/simulation.ts";
import type { TraceItem } from "#trace/codec/record.ts";
import { HEADER } from "../../trace/trace-samples.ts";
import { caseSetting, caseWorkload, namedProfile } from "../question/what-if-case.ts";

/** What a gateway under round-robin would have shown to its shadow, whose window is so large. */
function windowOf(requestsMax: number) {
  const setting = { ...caseSetting(caseWorkload()), rateScale: 3 };
  const inForce = namedProfile("round-robin");
  const { router, ...options } = simulationOf(setting, inForce, 0);
  const header = {
    ...HEADER,
    endpoints: options.engines.map(({ endpoint }) => endpoint),
    router: {
      seed: router.seed,
      profiles: { [inForce.name]: inForce.spec },
      defaultProfile: inForce.name,
      blockTokens: setting.blockTokens,
      staleAfterMicros: setting.staleAfterMicros,
      breaker: undefined,
    },
  };
  const why = new WindowWhy(namedProfile("gnomon"), requestsMax, () => setting.engine);
  const book = new RunBook(requestsMax);
  for (const endpoint of header.endpoints) book.endpoints.set(endpoint.id, endpoint);
  const first: TraceItem = { kind: "run", header };
  why.take(first, undefined);
  const simulation = new Simulation({
    ...options,
    router,
    observe: (input, decision) => {
      if (input.kind === "endpoint-joined") return;
      // As the feed has it: of the candidates nothing, which a router that decides again knows.
      why.take({ kind: "record", input, decision: undefined }, decision);
      book.take(input, decision?.kind === "routed" ? decision.endpoint : undefined);
    },
  });
  simulation.run();
  const run = book.close(header);
  const explained = recordedSetting(run, { engine: setting.engine, residuals: undefined, signals: setting.signals });
  return { card: finished(why.explain(run, explained, 1_000)), run };
}

test("a window is explained as a trace is: parts add up to what was seen, tokens to all prompts, and what weighed more is named", () => {
  const { card, run } = windowOf(10_000);
  const seen = run.observed.reduce((sum, { ttftMicros }) => sum + ttftMicros / 1_000, 0) / run.observed.length;
  assert.ok(Math.abs(card.parts.reduce((sum, { millis }) => sum + millis, 0) - seen) < 1e-6);
  assert.equal(card.requests, run.observed.length);
  const prompts = run.workload.reduce((sum, { promptTokens }) => sum + promptTokens, 0);
  assert.equal(
    card.tokens.reduce((sum, { tokens }) => sum + tokens, 0),
    prompts,
  );
  const lost = card.tokens.find(({ what }) => what === "policy");
  assert.match(lost?.meaning ?? "", /another engine had them/);
  assert.equal(card.sentences.length, 2);
  assert.deepEqual(JSON.parse(JSON.stringify(card)), card);
});

test("a window holds its latest requests and no more", () => {
  const { card, run } = windowOf(80);
  assert.ok(run.workload.length <= 80);
  assert.ok(card.requests <= run.workload.length && card.requests > 0);
  const all = windowOf(10_000).card.tokens.reduce((sum, { tokens }) => sum + tokens, 0);
  assert.ok(card.tokens.reduce((sum, { tokens }) => sum + tokens, 0) < all / 2);
});
