import assert from "node:assert/strict";
import { test } from "node:test";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { engineDefaults } from "#engine/config.ts";
import { simulationOf } from "#shadow/candidate/candidate.ts";
import { TokenLedger } from "#shadow/why/token-ledger.ts";
import { tokenSummary } from "#shadow/why/token-summary.ts";
import { Simulation } from "#sim/simulation.ts";
import { caseSetting, caseWorkload, namedProfile } from "../question/what-if-case.ts";

const KV_BLOCKS = 200;

/** Engines of so many blocks that report what their caches hold; each input may be another one on its way to the ledger. */
function summaryOf(believedBlocks: number, changed: (input: Input) => readonly Input[] = (input) => [input]) {
  const setting = { ...caseSetting(caseWorkload(150)), rateScale: 3, engine: engineDefaults({ kvBlocks: KV_BLOCKS }) };
  const ledger = new TokenLedger(() => believedBlocks);
  const take = (input: Input, decision: Decision | undefined) => {
    for (const one of changed(input)) ledger.take(one, decision);
  };
  const simulation = new Simulation({
    ...simulationOf(setting, namedProfile("gnomon"), 0),
    prefixes: { kind: "kv-events", delayMicros: 500 },
    observe: take,
  });
  simulation.run();
  return tokenSummary(ledger.rows);
}

const lost = ({ losses, possible }: ReturnType<typeof summaryOf>, loss: string) =>
  (losses.find((one) => one.loss === loss)?.tokens ?? 0) / possible;
const isReport = ({ kind }: Input) => kind.startsWith("blocks-") || kind.startsWith("kv-events-");

test("engines that report their caches are taken at their word, whatever size is believed", () => {
  const bySize = summaryOf(KV_BLOCKS - 1, (input) => (isReport(input) ? [] : [input]));
  assert.equal(bySize.byEvents, 0);
  for (const believed of [KV_BLOCKS - 1, 20, 20_000]) {
    const reporting = summaryOf(believed);
    assert.equal(reporting.byEvents, reporting.requests, `${believed}`);
    assert.ok(lost(reporting, "unexplained") < 0.02, `${believed}: ${lost(reporting, "unexplained")}`);
    assert.ok(Math.abs(lost(reporting, "evicted") - lost(bySize, "evicted")) < 0.05, `${believed}`);
  }
  // By a wrong size alone nothing can be explained.
  assert.ok(
    lost(
      summaryOf(20_000, (input) => (isReport(input) ? [] : [input])),
      "unexplained",
    ) > 0.1,
  );
});

test("events of another engine are not believed once answers say otherwise", () => {
  const next: Readonly<Record<EndpointId, EndpointId>> = { a: "b", b: "c", c: "a" };
  const swapped = summaryOf(KV_BLOCKS - 1, (input) =>
    isReport(input) && "endpoint" in input
      ? [{ ...input, endpoint: next[input.endpoint as EndpointId]! } as Input]
      : [input],
  );
  const bySize = summaryOf(KV_BLOCKS - 1, (input) => (isReport(input) ? [] : [input]));
  assert.ok(swapped.byEvents < 0.25 * swapped.requests, `${swapped.byEvents} of ${swapped.requests}`);
  assert.ok(Math.abs(lost(swapped, "evicted") - lost(bySize, "evicted")) < 0.1);
});

test("after events were missed an engine is taken by its size until it has stored as much as it has room for", () => {
  let seen = 0;
  const missed = summaryOf(KV_BLOCKS - 1, (input) => {
    if (input.kind !== "request-arrived" || ++seen !== 20) return [input];
    return [{ kind: "kv-events-missed", at: input.at, endpoint: "a" }, input];
  });
  assert.ok(
    missed.byEvents < missed.requests && missed.byEvents > missed.requests / 3,
    `${missed.byEvents} of ${missed.requests}`,
  );
});
