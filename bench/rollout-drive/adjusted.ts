import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RolloutView } from "#live/admin/rollout-view.ts";
import { TraceReader } from "#trace/reader.ts";
import { traceOfStorm } from "../policy/storm.ts";
import { Clients } from "./clients.ts";
import { DrivenGateway, startEngines } from "./gateway.ts";

const ENGINES = 3;
const CLIENTS = 40;
const ARMS = [{ name: "control" }, { name: "other", profile: "round-robin" }];
/** The judge needs ten blocks of a switchback, two windows each, before it adjusts. */
const RUNS = [
  { name: "split", seconds: 30, design: { kind: "split", by: "session", windowMillis: 10_000 } },
  { name: "split-request", seconds: 30, design: { kind: "split", by: "request", windowMillis: 10_000 } },
  { name: "switchback", seconds: 84, design: { kind: "switchback", windowMillis: 3_000, washoutMillis: 600 } },
] as const;
/** Nobody's: half a second quicker than the control. */
const WRONG = { arm: "other", metric: "e2e", figure: "mean", lowMillis: -600, highMillis: -500 };
/** Of the thread that predicts; no shadow runs. */
const SHADOW = { calibrate: "off", predictMillis: 1_000, intervalMillis: 3_600_000 };

/**
 * Rollouts live, and what is predicted of their requests: of how many, how soon, and what is left of the variance;
 * then one whose document predicts what is not so, which must be paused for it. The trace must replay alike through all
 * of it.
 */
export async function adjusted(): Promise<boolean> {
  const engines = await startEngines(ENGINES, "emulated-default");
  const folder = mkdtempSync(join(tmpdir(), "gnomon-rollout-adjusted-"));
  const trace = join(folder, "trace");
  const gateway = new DrivenGateway(folder, {
    listen: { port: 0 },
    endpoints: engines.map((url) => ({ url })),
    rollout: { lookMillis: 250 },
    shadow: { ...SHADOW, cpuShareMax: 0.3 },
    record: { directory: trace },
  });
  try {
    await gateway.start();
    const clients = new Clients(() => gateway.url, CLIENTS, true);
    await seconds(8);
    let isWell = true;
    for (const { name, seconds: long, design } of RUNS) {
      await start(gateway, name, design, []);
      await seconds(long);
      const rollout = await gateway.rollout(name);
      isWell = report(rollout) && isWell;
      await gateway.admin("POST", `/rollout/${name}/rollback`);
    }
    await start(gateway, "contradicted", RUNS[1].design, [WRONG]);
    const since = performance.now();
    const paused = await gateway.until("contradicted", "its pause", ({ phase }) => phase === "paused");
    print(`contradicted after ${((performance.now() - since) / 1000).toFixed(0)} s: ${paused.by}, ${paused.reason}`);
    await clients.stop();
    await gateway.end();
    const { replay, decisions } = await traceOfStorm(trace);
    const inputs = await predictedIn(trace);
    print(
      `${clients.requests} requests, failed ${clients.failed} ${clients.failures.join("; ")}; ${inputs} predictions in the trace; ` +
        `${replay.decisions} of ${decisions} decisions replayed, ${replay.differences} differences ${replay.first?.what ?? ""}`,
    );
    return isWell && paused.by === "judge" && clients.failed === 0 && replay.differences === 0;
  } finally {
    await gateway.end("SIGKILL").catch(() => {});
    rmSync(folder, { recursive: true });
  }
}

async function start(gateway: DrivenGateway, name: string, design: object, predictions: object[]): Promise<void> {
  const more = { guardrails: [], baselineMillis: 0, cooldownMillis: 0, predictions };
  await gateway.admin("POST", "/rollout", { name, arms: ARMS, design, ...more });
}

function report({ name, adjustment, differences }: RolloutView): boolean {
  const { predicted = 0, unpredicted = 0, waiting = 0 } = adjustment ?? {};
  const means = differences.filter(({ figure }) => figure === "mean");
  const figures = means.map(({ metric, count, meanMillis, lowMillis, highMillis, varianceLeft }) => {
    const interval = [meanMillis, lowMillis, highMillis].map((one) => one?.toFixed(1) ?? "-");
    return `${metric} ${interval[0]} [${interval[1]}, ${interval[2]}] ms of ${count}, ${(100 * (varianceLeft ?? NaN)).toFixed(0)} % of the variance left`;
  });
  print(`${name}: predicted ${predicted}, not ${unpredicted}, waiting ${waiting}; ${figures.join("; ")}`);
  return predicted > 10 * unpredicted && means.some(({ varianceLeft }) => (varianceLeft ?? 1) < 0.7);
}

async function predictedIn(trace: string): Promise<number> {
  let count = 0;
  for await (const item of new TraceReader(trace).items()) {
    if (item.kind === "record" && item.input.kind === "rollout-predicted") count += item.input.requests.length;
  }
  return count;
}

function seconds(count: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1000 * count));
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
