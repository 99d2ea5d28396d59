import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { loadCalibratedEngine } from "#config/engine-file.ts";
import { randomFor } from "#core/base/random.ts";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import type { EngineSource } from "#engine/engine-source.ts";
import { BETWEEN_RUNS_STATED, betweenRunsOf } from "#shadow/recorded/between-runs.ts";
import { calibrate } from "#shadow/calibrate/calibrate.ts";
import { engineText } from "#shadow/calibrate/engine-text.ts";
import type { Evidence, Served } from "#shadow/calibrate/evidence.ts";
import { seenSpeed } from "#shadow/calibrate/seen-speed.ts";
import { forcedReplay } from "#shadow/calibrate/forced-replay.ts";
import { joinedRuns } from "#shadow/calibrate/joined-runs.ts";
import { engineWith } from "#shadow/calibrate/parameters.ts";
import { replicaEngines } from "#shadow/candidate/replica.ts";
import { residualsFor, sourceRunOf } from "#shadow/recorded/engine-origin.ts";
import type { TraceHeader } from "#trace/codec/record.ts";

const SIZES = engineDefaults({ kvBlocks: 3000, sequencesMax: 16 });
const TIMES = {
  delayMicros: 4000,
  baseMicros: 8000,
  perPrefillTokenMicros: 30,
  perDecodeMicros: 500,
  perPrefillMicros: 0,
  perDecodeContextTokenMicros: 0,
  perPrefillPairMicros: 0,
};
const MODEL = engineWith(SIZES, TIMES);
const RUNS = [
  { name: "monday", level: 1 },
  { name: "tuesday", level: 1.12 },
];

/** What such an engine, so much slower that day and wandering so, would have shown of 300 requests. */
function evidenceFrom(
  engine: EngineConfig,
  level: number,
  seed: number,
  wander = [1.03, 0.97],
  gapMicros = 200_000,
): Evidence {
  const random = randomFor(seed, 1);
  let at = 0;
  const rows = Array.from({ length: 300 }, (_, i): Served => {
    at += 1 + random.below(i % 100 < 30 ? 1_000_000 : gapMicros);
    const promptTokens = 32 + random.below(900);
    const hashes = Int32Array.from({ length: 2 * Math.floor(promptTokens / 16) }, (_one, word) => i * 1000 + word);
    return {
      arrivalAt: at,
      endpoint: 0,
      promptTokens,
      outputTokens: 4 + random.below(120),
      cachedTokens: NaN,
      ttftMicros: NaN,
      e2eMicros: NaN,
      ok: true,
      hashes,
    };
  });
  const blank = { endpoints: ["one"], rows, left: {} };
  const seen = forcedReplay(blank, {
    ...engine,
    stepDrift: { windowMicros: 1e6, factors: Float64Array.from(wander, (factor) => level * factor) },
  });
  const shown = rows.map((row, i) => ({
    ...row,
    ttftMicros: seen.ttftMicros[i]!,
    e2eMicros: seen.e2eMicros[i]!,
    cachedTokens: seen.cachedTokens[i]!,
  }));
  return { ...blank, rows: shown };
}

/** What the engine has none of, stated where a test looks at something else: to look for it takes half of a fit. */
const STATED = { perPrefillMicros: 0, perDecodeContextTokenMicros: 0, perPrefillPairMicros: 0 };
const OPTIONS = { sizes: SIZES, fixed: STATED, betweenRuns: BETWEEN_RUNS_STATED };
const [first, second] = RUNS.map(({ level }, i) => evidenceFrom(MODEL, level, i + 1));
const calibration = calibrate(joinedRuns([first!, second!]), OPTIONS);
const residuals = calibration.residuals!;
/** Fitted to the first run, which is a calm one. */
const alone = calibrate(first!, { sizes: SIZES, betweenRuns: BETWEEN_RUNS_STATED });
const source: EngineSource = { runs: RUNS.map(({ name }) => ({ run: name })) };
const headerOf = (run: string) => ({ run, startWallMicros: 0 }) as TraceHeader;

test("of several runs each one's distance is known, as its steps had it and not as its full batches made of it", () => {
  const [monday, tuesday] = residuals.betweenRuns!.seen!;
  const apart = tuesday!.level - monday!.level;
  assert.ok(Math.abs(apart - Math.log(1.12)) < 0.02, `${apart} of ${Math.log(1.12)}`);
  assert.ok(monday!.error > 0 && monday!.error < 0.03 && tuesday!.error < 0.03);
});

test("a run too short to estimate keeps its place among the others and may lie where another run may", () => {
  const long = { level: 0.02, levelError: 0.01, delay: 0.1, prefill: NaN, noise: 0, noiseError: 0.1 };
  const short = { level: NaN, levelError: NaN, delay: NaN, prefill: NaN, noise: NaN, noiseError: NaN };
  const { seen, level } = betweenRunsOf([long, short, { ...long, level: -0.02 }], BETWEEN_RUNS_STATED, 0);
  assert.deepEqual(seen?.[0], { level: 0.02, error: 0.01, delay: 0.1 });
  assert.deepEqual(seen?.[1], { level: 0, error: level });
  assert.ok(level > 0 && level < 1, String(level));
});

test("one whose step times wandered within its run is stated to lie further off another day; none of no other day", () => {
  const levelOf = (stated: number, wander: number) =>
    betweenRunsOf([], { ...BETWEEN_RUNS_STATED, level: stated }, wander).level;
  assert.equal(levelOf(0.08, 0), 0.08);
  assert.equal(levelOf(0.08, 0.15), 0.17);
  assert.equal(levelOf(0, 0.15), 0);
  const restless = evidenceFrom(MODEL, 1, 3, [1, 1.5, 0.8, 1.3, 0.7]);
  const wandered = calibrate(restless, { sizes: SIZES, betweenRuns: BETWEEN_RUNS_STATED });
  const [still, moved] = [alone, wandered].map((one) => one.residuals!.betweenRuns!.level) as [number, number];
  const { level } = BETWEEN_RUNS_STATED;
  assert.ok(still >= level && still < level + 0.02, `of a calm run ${still}`);
  assert.ok(moved > still + 0.02, `of one that wandered ${moved}`);
});

test("an engine file keeps them", () => {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-runs-"));
  try {
    const file = join(folder, "engine.yaml");
    writeFileSync(file, engineText(calibration, { traces: ["a", "b"], requests: 600, source, notes: [] }));
    assert.deepEqual(loadCalibratedEngine(file).residuals?.betweenRuns, residuals.betweenRuns);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("asked about one of them, engines are drawn about that run's speed; about another run, about all of them", () => {
  const stepTime = (run: string) => {
    const here = residualsFor(residuals, source, headerOf(run));
    const logs = Array.from({ length: 20 }, (_, r) => {
      const engine = replicaEngines(calibration.engine, here.residuals, 1, r + 1, 60e6)(0);
      const { factors } = engine.stepDrift!;
      return Math.log(factors.reduce((sum, factor) => sum + factor, 0) / factors.length);
    });
    const mean = logs.reduce((sum, value) => sum + value, 0) / logs.length;
    const spread = Math.sqrt(logs.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (logs.length - 1));
    return { mean, spread, notes: here.notes.join() };
  };
  const [monday, tuesday, wednesday] = ["monday", "tuesday", "wednesday"].map(stepTime);
  const apart = tuesday!.mean - monday!.mean;
  assert.ok(Math.abs(apart - Math.log(1.12)) < 0.04, String(apart));
  assert.ok(wednesday!.mean > monday!.mean && wednesday!.mean < tuesday!.mean);
  assert.ok(wednesday!.spread > 2 * Math.max(monday!.spread, tuesday!.spread));
  assert.match(tuesday!.notes, /one of the 2 runs that the engine was fitted to; steps were 1\.\d\d times as long/);
  assert.match(wednesday!.notes, /another run than the engine was fitted to/);
});

test("a run of the same hours is stated to lie nearer than one of another day, in steps and in the delay", () => {
  const unseen = { ...residuals, betweenRuns: BETWEEN_RUNS_STATED };
  const at = (run: string, time: string) => ({ ...headerOf(run), startWallMicros: 1000 * Date.parse(time) });
  const origin = { runs: [sourceRunOf(at("monday", "2026-01-05T08:00:00.000Z"))] };
  const asked = (time: string) => residualsFor(unseen, origin, at("later", time)).residuals!.betweenRuns!;
  const [soon, later] = [asked("2026-01-05T09:00:00.000Z"), asked("2026-01-06T09:00:00.000Z")];
  const { level, session, delay, sessionDelay } = BETWEEN_RUNS_STATED;
  assert.deepEqual([soon.level, soon.delay], [session, sessionDelay]);
  assert.deepEqual([later.level, later.delay], [level, delay]);
  assert.ok(session! < level && sessionDelay! < delay);
});

test("more runs of other speeds move no coefficient away, make no tail of it, and narrow what another run may be", () => {
  const levels = [0.8, 1.25, 1, 1];
  const runs = levels.map((level, i) => evidenceFrom(MODEL, level, 20 + i, [1.03, 0.97], 110_000));
  const spread: number[] = [];
  for (const count of [2, 4]) {
    const some = runs.slice(0, count) as [Evidence, ...Evidence[]];
    const found = calibrate(joinedRuns(some), { sizes: SIZES, betweenRuns: BETWEEN_RUNS_STATED });
    const usual = Math.exp(levels.slice(0, count).reduce((sum, level) => sum + Math.log(level), 0) / count);
    const asked = evidenceFrom(MODEL, usual, 40);
    const middle = forcedReplay(asked, found.engine);
    const meanOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
    const off = meanOf([...middle.e2eMicros]) / meanOf(asked.rows.map(({ e2eMicros }) => e2eMicros)) - 1;
    assert.ok(Math.abs(off) < 0.05, `${count} runs: ${off}`);
    const { firstTokens, betweenRuns } = found.residuals!;
    const late = meanOf(firstTokens!.laterMicros.map(Math.abs));
    assert.ok(late < 0.1 * meanOf(firstTokens!.predictedMicros), `${count} runs: single first tokens ${late}`);
    betweenRuns!.seen!.forEach(({ level }, r) =>
      assert.ok(Math.abs(level - Math.log(levels[r]! / usual)) < 0.03, `${count} runs: ${r} at ${level}`),
    );
    spread.push(betweenRuns!.level);
  }
  assert.ok(spread[1]! < spread[0]!, String(spread));
});

test("late first tokens of one run are no tail of the others; what-if asks that run itself for its own", () => {
  const calm = [evidenceFrom(MODEL, 1, 60), evidenceFrom(MODEL, 1, 61)] as const;
  const late = evidenceFrom(MODEL, 1, 62);
  const micros = 400_000;
  const rows = late.rows.map((row, i) => {
    const more = i % 5 === 0 ? micros : 0;
    return { ...row, ttftMicros: row.ttftMicros + more, e2eMicros: row.e2eMicros + more };
  });
  const noisy = { ...late, rows };
  const found = calibrate(joinedRuns([...calm, noisy]), OPTIONS);
  const most = Math.max(...found.residuals!.firstTokens!.laterMicros);
  assert.ok(most > 0 && most < micros / 4, `all of them: ${most}`);
  const of = { runs: ["a", "b", "noisy"].map((run) => ({ run })) };
  const here = residualsFor(found.residuals, of, headerOf("noisy"), () => seenSpeed(noisy, found.engine));
  const own = Math.max(...here.residuals!.firstTokens!.laterMicros);
  assert.ok(own > micros / 2, `its own: ${own}`);
  assert.match(here.notes.join(), /one of the 3 runs that the engine was fitted to; by the trace's own answers/);
});

test("a run's own answers show how fast it was, idle or full, though the engine was fitted to another day", () => {
  for (const gapMicros of [400_000, 110_000])
    for (const level of [0.8, 1.3]) {
      const evidence = evidenceFrom(MODEL, level, 50, [1.03, 0.97], gapMicros);
      const seen = seenSpeed(evidence, alone.engine)!.speed;
      const off = seen.level - Math.log(level);
      assert.ok(Math.abs(off) < 0.03 && seen.error < 0.05, `${level}, a request each ${gapMicros / 2} us: ${off}`);
    }
});

test("what a run's first tokens show of its delay and prefill is theirs, and its wander takes the place of the fitted one", () => {
  const { stepTime } = alone.engine;
  assert.ok(stepTime.kind === "coefficients");
  for (const [delay, prefill] of [
    [3, 1],
    [1, 1.6],
    [0.4, 0.7],
  ] as const) {
    const times = {
      ...TIMES,
      delayMicros: delay * TIMES.delayMicros,
      perPrefillTokenMicros: prefill * TIMES.perPrefillTokenMicros,
    };
    const evidence = evidenceFrom(engineWith(SIZES, times), 1.2, 50, [1.03, 0.97], 400_000);
    const { speed, own } = seenSpeed(evidence, alone.engine)!;
    assert.ok(Math.abs(speed.level - Math.log(1.2)) < 0.03, `level ${speed.level}`);
    assert.ok(Math.abs(speed.delay! - Math.log(delay)) < 0.15, `delay ${speed.delay} for ${delay}`);
    assert.ok(Math.abs(speed.prefill! - Math.log(prefill)) < 0.15, `prefill ${speed.prefill} for ${prefill}`);
    const here = residualsFor(alone.residuals, { runs: [{ run: "another" }] }, headerOf("monday"), () => ({
      speed,
      own,
    })).residuals!;
    assert.equal(here.windows, own.windows);
    assert.equal(here.thisRun, speed);
    assert.equal(here.betweenRuns!.level, 0);
  }
  // Where every request meets a queue, nothing of its delay shows, and it stays as unsure as stated.
  const full = seenSpeed(evidenceFrom(MODEL, 1.3, 51, [1.03, 0.97], 20_000), alone.engine);
  assert.ok(Math.abs(full?.speed.delay ?? 0) < 0.5);
});

test("a delay or a prefill rate that a fit found none of, or far off, is what the run's first tokens show", () => {
  const evidence = evidenceFrom(MODEL, 1.2, 50, [1.03, 0.97], 400_000);
  const fitted = { ...TIMES, delayMicros: alone.engine.queueDelay.baseMicros };
  for (const wrong of [
    { delayMicros: 0 },
    { perPrefillTokenMicros: 0 },
    { delayMicros: 0, perPrefillTokenMicros: 0 },
    { perPrefillTokenMicros: 8 * TIMES.perPrefillTokenMicros },
    { perPrefillTokenMicros: TIMES.perPrefillTokenMicros / 50 },
  ]) {
    const engine = engineWith(SIZES, { ...fitted, ...wrong });
    const { speed, own } = seenSpeed(evidence, engine)!;
    const here = residualsFor(alone.residuals, { runs: [{ run: "another" }] }, headerOf("monday"), () => ({
      speed,
      own,
    })).residuals!;
    const { queueDelay, stepTime, stepDrift } = replicaEngines(engine, here, 1, 0, 1e6)(0);
    assert.ok(stepTime.kind === "coefficients");
    const factor: number = stepDrift!.factors[0]!;
    // What is shown is how long prompts take: a delay somewhat longer goes with a rate somewhat lower.
    for (const [tokens, within] of [
      [100, 0.25],
      [450, 0.06],
      [900, 0.1],
    ] as const) {
      const got: number = queueDelay.baseMicros + factor * stepTime.perPrefillTokenMicros * tokens;
      const truth = TIMES.delayMicros + 1.2 * TIMES.perPrefillTokenMicros * tokens;
      assert.ok(Math.abs(got / truth - 1) < within, `${JSON.stringify(wrong)}, ${tokens} tokens: ${got} for ${truth}`);
    }
  }
});
