import { setTimeout as sleep } from "node:timers/promises";
import { scrapedEvery } from "#sim/signal/scraped-every.ts";
import { parentPort, resourceLimits, workerData } from "node:worker_threads";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { TraceDecoder } from "#trace/codec/decoder.ts";
import type { TraceHeader } from "#trace/codec/record.ts";
import { RollingFit } from "../calibrate/rolling-fit.ts";
import { Pace, threadCpuMicros } from "./pace.ts";
import { type RecordedRun, RunBook } from "../recorded/recorded-run.ts";
import { inForceOf } from "../candidate/in-force.ts";
import { recordedSetting } from "../candidate/recorded-setting.ts";
import { Replay } from "../recorded/replay.ts";
import { ReplicaBudget } from "../question/replica-budget.ts";
import type { FromShadow, ShadowWork, ToShadow, TuneWork } from "./shadow-message.ts";
import { tuneWindow } from "./tune-window.ts";
import type { Setting } from "../candidate/candidate.ts";
import { whatIf } from "../question/what-if.ts";
import { WindowWhy } from "../why/window-why.ts";
import { PredictionWindow } from "../rollout/prediction-window.ts";

/**
 * The thread beside the gateway: it replays all that it receives; now and then it fits the engine model to what it
 * received last, and asks what other profiles would do. Fits and evaluations rest often, and lines are worked through
 * meanwhile.
 */
const work = workerData as ShadowWork;
const replay = work.onlyPredicts === true ? undefined : new Replay();
const fit = new RollingFit(work.engine, work.calibrate?.requestsMax ?? 0, work.residuals);
const why = work.why && new WindowWhy(work.why, work.windowRequests, () => fit.engine);
const budget = new ReplicaBudget(work.cpuShareMax * work.intervalMillis * MICROS_PER_MILLI);
const pace = new Pace(work.cpuShareMax);
let decoder: TraceDecoder | undefined;
let book = new RunBook(work.windowRequests);
const MIB = 1_048_576;
/** Of the thread's heap: what predictions are made from. */
const PREDICTED_SHARE = 0.25;
const predicted = new PredictionWindow({
  requestsMin: work.windowRequests,
  bytesMax: PREDICTED_SHARE * MIB * resourceLimits.maxOldGenerationSizeMb!,
});

parentPort?.on("message", (message: ToShadow) => {
  if ("awaited" in message) {
    predicted.awaits(message.awaited);
    return;
  }
  const { buffer, byteOffset, byteLength } = message.lines;
  const lines = Buffer.from(buffer, byteOffset, byteLength).toString();
  for (const line of lines.split("\n")) if (line !== "") take(line);
  send({ kind: "taken", bytes: byteLength, parity: parity(), cpuMicros: threadCpuMicros() });
});
void rounds();
void predictions();
if (work.tune !== undefined) void proposals(work.tune);

function take(line: string): void {
  if (line.startsWith(HEADER_START)) {
    decoder = new TraceDecoder(line);
    book = new RunBook(work.windowRequests);
    predicted.begin(decoder.header);
    for (const endpoint of decoder.header.endpoints) book.endpoints.set(endpoint.id, endpoint);
    const run = { kind: "run", header: decoder.header } as const;
    replay?.take(run);
    why?.take(run, undefined);
    return;
  }
  const item = decoder?.decode(line);
  if (item === undefined) return;
  replay?.take(item);
  why?.take(item, replay?.decided);
  if (item.kind === "gap") return book.leave("dropped on the way to the shadow", item.dropped);
  const endpoint = item.decision?.kind === "routed" ? item.decision.endpoint : undefined;
  book.take(item.input, endpoint);
  predicted.take(item.input, endpoint);
}

/** Every trace begins with a header, and only a header begins so. */
const HEADER_START = '{"kind":"header"';

async function rounds(): Promise<void> {
  let nextAt = performance.now();
  for (let round = 0; ;) {
    nextAt = Math.max(nextAt + work.intervalMillis, performance.now());
    await sleep(Math.max(0, nextAt - performance.now()));
    if (decoder === undefined || book.requests < work.requestsMin) continue;
    try {
      await once(decoder.header, round++);
    } catch (error) {
      send({ kind: "failed", detail: String(error) });
    }
  }
}

/** Predictions have a share of their own: fits and evaluations rest meanwhile, and the other way round. */
async function predictions(): Promise<void> {
  const own = new Pace(work.cpuShareMax);
  for (;;) {
    await sleep(work.predictMillis);
    own.begin();
    try {
      for (const one of predicted.predictions(work.requestsMin, settingOf)) send({ kind: "predicted", ...one });
    } catch (error) {
      send({ kind: "failed", detail: String(error) });
    }
    // A simulation is one piece of work.
    await own.rest(Infinity);
  }
}

/** Searches have a share of their own as well. */
async function proposals(asked: TuneWork): Promise<void> {
  const own = new Pace(work.cpuShareMax);
  for (;;) {
    await sleep(asked.intervalMillis);
    // Of few requests the answer is that they are too few.
    if (decoder === undefined || book.requests === 0) continue;
    own.begin();
    try {
      const run = settled(book.close(decoder.header));
      const answer = await tuneWindow(asked, run, settingOf(run), () => own.rest());
      send({ kind: "tuned", answer });
    } catch (error) {
      send({ kind: "failed", detail: String(error) });
    }
  }
}

function settingOf(run: RecordedRun): Setting {
  const { engine, residuals } = fit;
  return recordedSetting(run, { engine, residuals, signals: scrapedEvery(work.scrapeMillis * MICROS_PER_MILLI) });
}

async function once(header: TraceHeader, round: number): Promise<void> {
  pace.begin();
  const run = settled(book.close(header));
  if (work.calibrate !== undefined && round % work.calibrate.every === 0) await refit(run);
  if (work.onlyPredicts === true) return;
  await evaluate(run);
  if (why !== undefined) await explain(why, run);
}

async function explain(of: WindowWhy, run: RecordedRun): Promise<void> {
  send({ kind: "explained", why: await pace.through(of.explain(run, settingOf(run), Date.now())) });
}

async function refit(run: RecordedRun): Promise<void> {
  const since = { millis: performance.now(), cpuMicros: threadCpuMicros() };
  const report = await pace.through(fit.attempt(run));
  send({ kind: "fitted", report, ...spent(since) });
}

async function evaluate(run: RecordedRun): Promise<void> {
  const since = { millis: performance.now(), cpuMicros: threadCpuMicros() };
  const { residuals } = fit;
  const inForce = inForceOf(run.header, run.fleetEvents);
  const candidates = work.candidates.filter(({ name }) => name !== inForce.name);
  const requests = (1 + candidates.length) * run.workload.length;
  const replicas = residuals === undefined ? 0 : budget.replicasFor(requests);
  const answer = await whatIf({
    setting: settingOf(run),
    inForce,
    candidates,
    replicas,
    observed: run.observed,
    threadsMax: 1,
    pause: () => pace.rest(),
  });
  const took = spent(since);
  budget.spent((1 + replicas) * requests, took.cpuMicros);
  const withoutIntervals = replicas > 0 ? "" : residuals === undefined ? NO_RESIDUALS : NO_TIME;
  const { fleetEventsMerged = 0 } = run;
  send({ kind: "evaluated", answer, withoutIntervals, fleetEventsMerged, ...took });
}

const NO_RESIDUALS = "no fit has estimated yet how far the engine model's step times are off";
const NO_TIME = "three replicas of every simulation take longer than cpuShareMax leaves of intervalMillis";

/** First part of a window whose times are not compared: simulated caches begin empty, the real ones did not. */
const BURN_IN_PART = 0.2;
const EARLY = "at the beginning of the window, when simulated caches are empty and real ones are not";

/** A window's first requests are traffic but no evidence of the model's error. */
function settled(run: RecordedRun): RecordedRun {
  const arrivals = run.workload.map(({ arrivalMicros }) => arrivalMicros).sort((a, b) => a - b);
  const from = arrivals[Math.floor(BURN_IN_PART * arrivals.length)] ?? 0;
  const observed = run.observed.map((one, i) =>
    run.workload[i]!.arrivalMicros < from ? { ...one, ok: false, uncompared: EARLY } : one,
  );
  return { ...run, observed };
}

function spent(since: { readonly millis: number; readonly cpuMicros: number }) {
  return { millis: performance.now() - since.millis, cpuMicros: threadCpuMicros() - since.cpuMicros };
}

function parity() {
  const { decisions = 0, differences = 0, unverifiable = 0 } = replay?.result() ?? {};
  return { decisions, differences, unverifiable };
}

function send(message: FromShadow): void {
  parentPort?.postMessage(message);
}
