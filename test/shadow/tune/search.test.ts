import assert from "node:assert/strict";
import { test } from "node:test";
import { profileNames } from "#config/profile-file.ts";
import type { JobPool } from "#shadow/job/job-pool.ts";
import type { Candidate } from "#shadow/candidate/candidate.ts";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import { COMMON_SCORERS } from "#shadow/tune/policy-space.ts";
import { Search, type SearchOptions } from "#shadow/tune/search.ts";
import { namedProfile } from "../question/what-if-case.ts";
import { KeptTrials, MEAN_E2E } from "./tune-case.ts";

const BASES = profileNames()
  .filter((name) => name !== "always-busiest")
  .map(namedProfile);
/** Of profiles with several names one is looked at. */
const POLICIES = new Set(BASES.map(({ spec }) => JSON.stringify(spec))).size;
const BEST = "sticky";

/**
 * A search over all shipped profiles, one of which is better, with simulations that take a second for the whole
 * traffic.
 */
function searchOf(more: Partial<SearchOptions>) {
  const clock = { millis: 0 };
  const seen: { readonly name: string; readonly share: number; readonly replica: number }[] = [];
  const run = (job: Parameters<JobPool["run"]>[0]) => {
    assert.ok(job.kind === "trial");
    const { candidate, share, replica } = job.trial;
    clock.millis += 1000 * share;
    seen.push({ name: candidate.name, share, replica });
    const loss = candidate.name === BEST ? 80 : 100 + BASES.findIndex(({ name }) => name === candidate.name);
    return Promise.resolve({ losses: Float64Array.of(loss), completed: 1 });
  };
  const search = new Search(
    { run: run as unknown as JobPool["run"] },
    {
      objective: MEAN_E2E,
      inForce: namedProfile("llm-d"),
      bases: BASES,
      space: { scorers: [], accepts: () => false },
      seed: 1,
      isWhole: false,
      trialsMax: 60,
      parallel: 1,
      millisLeft: () => Infinity,
      memory: new KeptTrials(),
      ...more,
    },
  );
  return { search, seen, clock, spent: () => seen.reduce((sum, { share }) => sum + share, 0) };
}

for (const isWhole of [false, true]) {
  test(`all shipped profiles are looked at within 60 simulations, and the best comes to the end${isWhole ? ", where none can be of a part" : ""}`, async () => {
    assert.ok(POLICIES > 35, "few profiles prove nothing");
    const { search, seen, spent } = searchOf({ isWhole });
    const { finalists } = await search.run();
    assert.equal(finalists[0]?.candidate.name, BEST);
    assert.equal(new Set(seen.map(({ name }) => name)).size, POLICIES);
    assert.ok(spent() <= 60 + 1e-9, `${spent()} spent`);
  });
}

test("on a budget of time as many go on as there is time for at the pace so far, and the best comes to the end", async () => {
  for (const seconds of [18, 24, 40]) {
    const { search, clock, spent } = searchOf({
      trialsMax: 1_000_000,
      millisLeft: () => 1000 * seconds - clock.millis,
    });
    const { finalists, isSettled } = await search.run();
    assert.equal(finalists[0]?.candidate.name, BEST, `${seconds} s`);
    assert.ok(isSettled || spent() <= seconds + 1, `${spent()} s of ${seconds}`);
  }
});

test("a budget that is too small for all profiles still brings two to the end", async () => {
  const { search, seen, spent } = searchOf({ isWhole: true, trialsMax: 12 });
  const { finalists, policies } = await search.run();
  assert.ok(finalists.length >= 1);
  assert.equal(policies, new Set(seen.map(({ name }) => name)).size, "those that were simulated are counted");
  assert.ok(spent() <= 12);
});

test("law: a policy near another one is simulated under the signals of the one that it was made from", async () => {
  const gaugesOf = (millis: number) => ({ signals: scrapedEvery(1_000 * millis), staleAfterMicros: 3_000_000 });
  const bases = ["llm-d", "aibrix-least-request", "weighted"].map((name, i) => ({
    ...namedProfile(name),
    gauges: gaugesOf(10 * (i + 1)),
  }));
  const inForce = namedProfile("gnomon");
  const tried = new Map<string, Candidate["gauges"]>();
  const run = (job: Parameters<JobPool["run"]>[0]) => {
    assert.ok(job.kind === "trial");
    const { candidate } = job.trial;
    tried.set(candidate.name, candidate.gauges);
    const loss = candidate.name.startsWith("tuned-") ? 80 + (tried.size % 7) : candidate === inForce ? 1_000 : 90;
    return Promise.resolve({ losses: Float64Array.of(loss), completed: 1 });
  };
  const space = { scorers: COMMON_SCORERS, accepts: () => true };
  const { finalists } = await new Search(
    { run: run as unknown as JobPool["run"] },
    {
      inForce,
      bases,
      space,
      seed: 1,
      isWhole: true,
      trialsMax: 300,
      parallel: 1,
      objective: MEAN_E2E,
      memory: new KeptTrials(),
      millisLeft: () => Infinity,
    },
  ).run();
  const made = finalists.filter(({ origin }) => origin !== "");
  assert.ok(made.length > 2);
  for (const { origin, candidate } of made) {
    // A policy that was made from another one that was made names the first of them.
    const from = bases.find(({ name }) => origin.startsWith(`${name}; `));
    assert.deepEqual(tried.get(candidate.name), from?.gauges, origin);
  }
  assert.ok(made.some(({ candidate }) => candidate.gauges !== undefined));
});
