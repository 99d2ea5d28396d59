import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import { runCandidate } from "#shadow/candidate/candidate.ts";
import { pairedDifference } from "#shadow/figure/paired.ts";
import { readRecordedRun } from "#shadow/recorded/recorded-run.ts";
import { whatIf } from "#shadow/question/what-if.ts";
import { simulate } from "#sim/simulate.ts";
import { NO_LATENCY } from "#sim/setting/simulation-options.ts";
import { WorkloadArrivals } from "#sim/source/workload-arrivals.ts";
import type { TraceHeader, TraceItem } from "#trace/codec/record.ts";
import { CASE_ENGINE, CASE_SIGNALS, caseSetting, caseWorkload, namedProfile } from "./what-if-case.ts";
import { HEADER } from "../../trace/trace-samples.ts";

/** A trace as a gateway would have recorded it, made by the simulator. */
function* simulatedTrace(profile: string): Generator<TraceItem> {
  const { workload: requests, endpoints } = caseSetting(caseWorkload());
  const { spec } = loadProfile(profile);
  const router = {
    seed: 9,
    profiles: { [profile]: spec },
    defaultProfile: profile,
    blockTokens: 16,
    staleAfterMicros: 2_000_000,
  };
  const header: TraceHeader = { ...HEADER, router: { ...router, breaker: undefined } };
  yield { kind: "run", header };
  const items: TraceItem[] = [];
  simulate({
    router,
    engines: endpoints.map((endpoint) => ({
      endpoint: { ...endpoint, kvCapacityTokens: 1999 * 16, concurrencyMax: 256 },
      config: CASE_ENGINE,
    })),
    arrivals: new WorkloadArrivals(requests, {
      seed: 9,
      blockTokens: 16,
      timeoutMicros: Infinity,
      timeScale: 1,
      rateScale: 1,
    }),
    signals: CASE_SIGNALS,
    prefixes: { kind: "approximate" },
    latency: NO_LATENCY,
    horizonMicros: Infinity,
    over: "answered",
    tokenGaps: false,
    check: true,
    observe: (input, decision) =>
      items.push({
        kind: "record",
        input,
        decision: decision && {
          ...decision,
          breakdown: { ...decision.breakdown, candidates: [], endpointCount: 3, digest: 0 },
        },
      }),
  });
  yield* items;
}

async function* slowly(items: Iterable<TraceItem>): AsyncGenerator<TraceItem> {
  yield* items;
}

test("traffic that was simulated is predicted again: latencies within the phase of a scrape, tokens exactly", async () => {
  const run = await readRecordedRun(slowly(simulatedTrace("gnomon")));
  assert.equal(run.workload.length, caseWorkload().length);
  assert.deepEqual(run.left, {});
  const answer = await whatIf({
    setting: { ...caseSetting(run.workload), endpoints: run.endpoints },
    inForce: namedProfile("gnomon"),
    candidates: [namedProfile("round-robin")],
    observed: run.observed,
  });
  for (const error of Object.values(answer.modelError ?? {})) {
    assert.ok(error !== undefined && error.pairs > 120);
    assert.ok(Math.abs(error.meanRelative) < 0.03, JSON.stringify(error));
  }
});

test("the same question has the same answer, to the byte, and candidates do not see one another", async () => {
  const ask = (names: readonly string[]) =>
    whatIf({
      setting: caseSetting(caseWorkload()),
      inForce: namedProfile("gnomon"),
      candidates: names.map(namedProfile),
      observed: undefined,
    });
  const first = await ask(["round-robin", "lmetric"]);
  assert.equal(JSON.stringify(await ask(["round-robin", "lmetric"])), JSON.stringify(first));
  const alone = await ask(["lmetric"]);
  assert.deepEqual(
    alone.candidates.find(({ name }) => name === "lmetric"),
    first.candidates.find(({ name }) => name === "lmetric"),
  );
});

test("the profile in force differs from itself by nothing and agrees with itself", async () => {
  const { candidates } = await whatIf({
    setting: caseSetting(caseWorkload()),
    inForce: namedProfile("gnomon"),
    candidates: [namedProfile("gnomon")],
    observed: undefined,
  });
  assert.equal(candidates.length, 1);
  const [own] = candidates;
  assert.equal(own?.agreement, 1);
  for (const difference of Object.values(own?.difference ?? {})) {
    assert.deepEqual([difference?.mean, difference?.low, difference?.high], [0, 0, 0]);
  }
});

test("every request of the workload is answered once, whichever profile", () => {
  const requests = caseWorkload();
  for (const name of ["gnomon", "random", "sticky"]) {
    const outcome = runCandidate(caseSetting(requests), namedProfile(name));
    assert.equal(outcome.completed, requests.length, name);
    assert.ok(
      outcome.ttftMicros.every((ttft, i) => ttft > 0 && ttft <= outcome.e2eMicros[i]!),
      name,
    );
    assert.ok(
      outcome.cachedTokens.every((cached, i) => cached >= 0 && cached < requests[i]!.promptTokens),
      name,
    );
  }
});

test("a paired interval holds the mean and narrows with more pairs", () => {
  const noisy = (pairs: number) => Float64Array.from({ length: pairs }, (_, i) => 10 + ((i * 7919) % 13));
  const few = pairedDifference(noisy(50), new Float64Array(50), 1);
  const many = pairedDifference(noisy(5000), new Float64Array(5000), 1);
  assert.ok(few !== undefined && many !== undefined);
  for (const one of [few, many]) assert.ok(one.low <= one.mean && one.mean <= one.high);
  assert.ok(many.high - many.low < few.high - few.low);
  assert.equal(pairedDifference(Float64Array.of(NaN), Float64Array.of(1), 1), undefined);
});
