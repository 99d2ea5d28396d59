import type { Times } from "#core/rollout/judge/outcome.ts";
import type { RouteRequest } from "#core/request/request.ts";
import type { Input } from "#core/input/input.ts";
import { Simulation } from "#sim/simulation.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { arrivalsOf, clusterOf, POOL_LABEL, POOLS, profileNamed, TRAFFICS, workloadOf } from "./fleet.ts";
import { rolloutRun, SECOND } from "./rollout-run.ts";

const CONVERSATIONS_PER_SECOND = 4;
const WINDOW_SECONDS = 10;
/** The twin's engines are all so much slower than the real ones. */
const TWIN_SPEED = 1.1;
const SLOWDOWNS: readonly number[] = [1, 1.03, 1.1];

/**
 * Engines against engines under one policy: pools by label, of which one takes 3 or 10 % longer for each step. How many
 * requests until its mean E2E is surely longer, without predictions and with those that a twin makes of each request
 * before it ends (all endpoints alike, and a tenth too slow); and how often engines that are alike are found to differ.
 */
export function engineCanary(runs: number, seconds: number): void {
  print(`engines by label: ${runs} rollouts each of ${seconds} s, windows of ${WINDOW_SECONDS} s, mean E2E`);
  print("steps take   predictions   found   requests until then, median   variance left");
  for (const slowdown of SLOWDOWNS) {
    const found: Found[][] = [[], []];
    for (let seed = 1; seed <= runs; seed++) {
      const workload = workloadOf(TRAFFICS[0]!, CONVERSATIONS_PER_SECOND, seconds, seed);
      const predictions = twinOf(workload, seed);
      found[0]!.push(judged(workload, seed, slowdown, seconds));
      found[1]!.push(judged(workload, seed, slowdown, seconds, (request) => predictions.get(request.id)));
    }
    found.forEach((each, i) => {
      const counts = each.map(({ requests }) => requests).toSorted((a, b) => a - b);
      const middle = counts[Math.floor((counts.length - 1) / 2)]!;
      const times = each.filter(({ requests }) => requests < Infinity).length;
      const left = each.reduce((sum, { varianceLeft }) => sum + varianceLeft, 0) / each.length;
      const cells = [
        `${times} of ${runs}`.padStart(9),
        (middle < Infinity ? String(middle) : "not found").padStart(29),
      ];
      print(
        `x ${slowdown.toFixed(2)}       ${i === 0 ? "without    " : "with       "} ${cells.join(" ")} ${left.toFixed(3).padStart(15)}`,
      );
    });
  }
}

interface Found {
  /** Until the interval left out 0; Infinity where it never did. */
  readonly requests: number;
  readonly varianceLeft: number;
}

function judged(
  workload: readonly WorkloadRequest[],
  seed: number,
  slowdown: number,
  seconds: number,
  predictionOf?: (request: RouteRequest) => Times | undefined,
): Found {
  let requests = Infinity;
  const run = rolloutRun({
    control: "gnomon",
    other: "gnomon",
    design: { kind: "pools", windowMicros: WINDOW_SECONDS * SECOND, by: "session", label: POOL_LABEL, redrawn: true },
    workload,
    seed,
    plannedCount: seconds / WINDOW_SECONDS / 2,
    slowerPool: { label: POOLS[1]!, speed: slowdown },
    ...(predictionOf && { predictionOf }),
    looked: (_, judge) => {
      const { low, high } = judge.difference(1, "e2e", "mean");
      if (requests === Infinity && (low > 0 || high < 0))
        requests = judge.totals.reduce((sum, { counts }) => sum + counts.requests, 0);
    },
  });
  return { requests, varianceLeft: run.difference("e2e", "mean").varianceLeft };
}

/** What a twin makes of each request, by id. */
function twinOf(workload: readonly WorkloadRequest[], seed: number): Map<string, Times> {
  const profiles = { control: profileNamed("gnomon") };
  const cluster = clusterOf(profiles, arrivalsOf(workload, seed), seed, TWIN_SPEED);
  const open = new Map<string, { readonly at: number; first: number }>();
  const times = new Map<string, Times>();
  const observe = (input: Input): void => {
    if (input.kind === "request-arrived") open.set(input.request.id, { at: input.at, first: NaN });
    else if (input.kind === "first-token") open.get(input.requestId)!.first = input.at;
    else if (input.kind === "request-finished") {
      const { at, first } = open.get(input.requestId)!;
      open.delete(input.requestId);
      times.set(input.requestId, { ttft: first - at, tpot: undefined, e2e: input.at - at });
    }
  };
  new Simulation({ ...cluster, observe }).run();
  return times;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
