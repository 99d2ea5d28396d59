import assert from "node:assert/strict";
import { test } from "node:test";
import { simulationOf } from "#shadow/candidate/candidate.ts";
import { recordedLedger } from "#shadow/why/recorded-ledger.ts";
import { TokenLedger } from "#shadow/why/token-ledger.ts";
import { tokenSummary } from "#shadow/why/token-summary.ts";
import { Simulation } from "#sim/simulation.ts";
import { TraceDecoder } from "#trace/codec/decoder.ts";
import { LineEncoder } from "../../trace/line-encoder.ts";
import type { TraceItem } from "#trace/codec/record.ts";
import { HEADER } from "../../trace/trace-samples.ts";
import { caseEndpoints, caseSetting, caseWorkload, namedProfile } from "../question/what-if-case.ts";

const CAPACITY = 300;

test("of a fleet that is larger than what a trace holds of each decision, a router that decides again shows the rest", async () => {
  const candidate = namedProfile("round-robin");
  const endpoints = caseEndpoints("a", "b", "c", "d", "e", "f", "g", "h");
  const setting = { ...caseSetting(caseWorkload()), endpoints, rateScale: 3 };
  const { router, ...options } = simulationOf(setting, candidate, 0);
  const whole = new TokenLedger(() => CAPACITY);
  const header = {
    ...HEADER,
    endpoints: options.engines.map(({ endpoint }) => endpoint),
    router: {
      seed: router.seed,
      profiles: { [candidate.name]: candidate.spec },
      defaultProfile: candidate.name,
      blockTokens: setting.blockTokens,
      staleAfterMicros: setting.staleAfterMicros,
      breaker: undefined,
    },
    hash: { ...HEADER.hash, blockTokens: setting.blockTokens },
  };
  const items: TraceItem[] = [{ kind: "run", header }];
  whole.takeItem(items[0]!);
  const simulation = new Simulation({
    ...options,
    router,
    observe: (input, decision) => {
      if (input.kind === "endpoint-joined") return;
      whole.take(input, decision);
      items.push({ kind: "record", input, decision: decision as never });
    },
  });
  simulation.run();
  // As a recorder writes it: the chosen one and the three best others.
  const encoder = new LineEncoder({ blockTokens: setting.blockTokens });
  const decoder = new TraceDecoder(encoder.header(header));
  const kept = items.map((item) =>
    item.kind === "record" ? decoder.decode(encoder.record(item.input, item.decision)) : item,
  );
  const again = await recordedLedger(streamOf(kept), () => CAPACITY, Infinity);
  assert.deepEqual(tokenSummary(again.rows), tokenSummary(whole.rows));
  assert.ok(tokenSummary(whole.rows).losses.some(({ loss }) => loss === "policy"));

  const alone = new TokenLedger(() => CAPACITY);
  for (const item of kept) alone.takeItem(item);
  const unexplained = (rows: typeof alone.rows) =>
    tokenSummary(rows).losses.find(({ loss }) => loss === "unexplained")?.tokens ?? 0;
  assert.ok(unexplained(alone.rows) > unexplained(whole.rows), "the trace alone does not show what was believed");
});

async function* streamOf(items: readonly TraceItem[]): AsyncGenerator<TraceItem> {
  yield* items;
}
