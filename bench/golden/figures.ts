import type { Outcomes } from "#sim/result/outcomes.ts";
import { percentile } from "#core/base/quantile.ts";
import { type Answers, outputTokensOf } from "./answers.ts";
import type { GoldenCase } from "./golden-case.ts";
import { type GoldenRun, seenAt } from "./run-case.ts";

/** Figures of one engine or of all, by the names of the vectors, reckoned as BLIS does. */
export function figuresOf(
  golden: GoldenCase,
  run: GoldenRun,
  answers: Answers,
  instance: number | undefined,
): Record<string, number> {
  const { outcomes, fleet, clock } = run.simulation;
  const all = [...outcomes.ids.keys()].filter((row) => instance === undefined || outcomes.endpoint[row] === instance);
  const rows = all.filter((row) => isSeen(golden, row, outcomes));
  const engines = [...fleet.specs.keys()].filter((number) => instance === undefined || number === instance);
  // A request that comes into sight while a step runs is no event.
  const end = golden.horizonMicros === Infinity ? clock : golden.horizonMicros;
  const gauges = engines.map((number) => fleet.gauges(end + 1, number));
  const done = rows.filter((row) => outcomes.isCompleted(row));
  const count = (...statuses: readonly string[]) =>
    rows.filter((row) => statuses.includes(outcomes.statusOf(row))).length;
  const served = rows.filter((row) => !["too-long", "never-fits"].includes(outcomes.statusOf(row)));
  const output = sum(
    done.map((row) => Math.min(outcomes.outputTokens[row]!, outputTokensOf(golden, outcomes.ids[row]!))),
  );
  const seconds = Math.max(0, ...engines.map((number) => endOf(golden, run, number))) / 1e6;
  const perSecond = (value: number) => (done.length === 0 || seconds === 0 ? 0 : value / seconds);
  return {
    completed_requests: done.length,
    injected_requests: rows.length,
    still_queued: sum(gauges.map(({ waiting }) => waiting)),
    still_running: sum(gauges.map(({ running }) => running)),
    dropped_unservable: count("too-long", "never-fits"),
    timed_out_requests: count("timed-out"),
    length_capped_requests: count("length"),
    total_input_tokens: sum(served.map((row) => outcomes.promptTokens[row]!)),
    total_output_tokens: output,
    vllm_estimated_duration_s: seconds,
    responses_per_sec: perSecond(done.length),
    tokens_per_sec: perSecond(output),
    preemption_count: sum(gauges.map(({ preemptions }) => preemptions)),
    ...(instance === undefined && {
      rejected_requests: all.filter((row) => outcomes.statusOf(row) === "rejected").length,
      cache_hit_rate: mean(
        gauges.map(({ blockHits, blockMisses }) => blockHits / Math.max(1, blockHits + blockMisses)),
      ),
    }),
    ...timesOf(run, answers, rows, done),
  };
}

/** Whether the engine that the request was sent to has seen it by the horizon. */
function isSeen(golden: GoldenCase, row: number, outcomes: Outcomes): boolean {
  const request = golden.requests[Number(outcomes.ids[row]!.slice("request_".length))]!;
  return outcomes.endpoint[row]! >= 0 && seenAt(golden, request) <= golden.horizonMicros;
}

/** All 0 where no request was answered. */
function timesOf(
  { simulation: { outcomes } }: GoldenRun,
  { e2e, gaps }: Answers,
  rows: readonly number[],
  done: readonly number[],
): Record<string, number> {
  const known = (column: ArrayLike<number>) =>
    done.length === 0 ? [] : rows.map((row) => column[row]!).filter((value) => !Number.isNaN(value));
  return {
    ...millis(
      "e2e",
      done.map((row) => e2e[row]!),
    ),
    ...millis("ttft", known(outcomes.ttft)),
    ...millis(
      "itl",
      done.flatMap((row) => gaps[row]!),
    ),
    scheduling_delay_p99_ms: share(sorted(known(outcomes.queueDelay)), 99),
  };
}

/** Time of an engine's last event: a step starts or ends, a request is seen, or its client gives up. */
function endOf(golden: GoldenCase, { simulation: { outcomes }, steps }: GoldenRun, engine: number): number {
  const { horizonMicros, requests } = golden;
  let last = 0;
  const event = (at: number) => {
    if (at <= horizonMicros && at > last) last = at;
  };
  steps[engine]!.startAt.forEach(event);
  steps[engine]!.endAt.forEach(event);
  outcomes.ids.forEach((id, row) => {
    if (outcomes.endpoint[row] !== engine) return;
    const request = requests[Number(id.slice("request_".length))]!;
    event(request.arrivalAt + golden.admissionMicros + golden.routingMicros);
    event(seenAt(golden, request));
    if (outcomes.statusOf(row) === "timed-out") event(request.deadlineAt);
  });
  return last;
}

function millis(name: string, micros: readonly number[]): Record<string, number> {
  const ordered = sorted(micros);
  return {
    [`${name}_mean_ms`]: mean(micros) / 1000,
    [`${name}_p90_ms`]: share(ordered, 90),
    [`${name}_p95_ms`]: share(ordered, 95),
    [`${name}_p99_ms`]: share(ordered, 99),
  };
}

function sorted(micros: readonly number[]): Float64Array {
  return Float64Array.from(micros).sort();
}

/** In milliseconds; 0 of nothing. */
function share(ordered: Float64Array, percent: number): number {
  return ordered.length === 0 ? 0 : percentile(ordered, percent) / 1000;
}

function mean(values: readonly number[]): number {
  return sum(values) / Math.max(1, values.length);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
