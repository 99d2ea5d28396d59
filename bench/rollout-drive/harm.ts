import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { traceOfStorm } from "../policy/storm.ts";
import { Clients } from "./clients.ts";
import { DrivenGateway, startEngines } from "./gateway.ts";

const WINDOW_MILLIS = 10_000;
const BASELINE_MILLIS = 8_000;
const ENGINES = 6;
/** After it was taken back the clients go on for as long. */
const AFTER_MILLIS = 1_500;
/** The policy's own; rolled out against itself it does no harm. */
const SAME = "gnomon";
/**
 * Where arms share engines it hurts the control as much as itself, so that a split hides most of it; whether a guardrail
 * relative to the control is crossed there is chance. In a switchback each arm has the fleet to itself.
 */
const MILDER = "cognitora";
/** In a switchback blocks of windows are compared, of which four are the least that shows anything. */
const BACK_MILLIS_MAX = 600_000;
/** So long a profile that does no harm is watched. */
const WATCH_MILLIS = 2.2 * WINDOW_MILLIS;

const DESIGNS = {
  switchback: { kind: "switchback", windowMillis: WINDOW_MILLIS, washoutMillis: 1_000 },
  split: { kind: "split", by: "session", windowMillis: WINDOW_MILLIS },
  canary: { kind: "canary", by: "session", windowMillis: WINDOW_MILLIS, stepPercents: [50, 100] },
} as const;

/**
 * A worse profile is rolled out on live traffic over sockets, with the guardrails that a rollout has by default: in which
 * window it is taken back, how many requests fail, and whether the trace replays alike through it. The policy's own profile
 * is rolled out too, and stays. False where one of them is not as it must be.
 */
export async function harm(profiles: readonly string[], clients: number): Promise<boolean> {
  const engines = await startEngines(ENGINES, "emulated-default");
  let isWell = true;
  for (const profile of profiles) {
    for (const [name, design] of Object.entries(DESIGNS)) {
      if (profile === MILDER && name !== "switchback") continue;
      isWell = (await takenBack(name, design, profile, engines, clients)) && isWell;
    }
  }
  return isWell;
}

async function takenBack(
  name: string,
  design: object,
  profile: string,
  engines: readonly string[],
  count: number,
): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-rollout-harm-"));
  const trace = join(folder, "trace");
  const gateway = new DrivenGateway(folder, {
    listen: { port: 0 },
    endpoints: engines.map((url) => ({ url })),
    rollout: { lookMillis: 250 },
    record: { directory: trace },
  });
  try {
    await gateway.start();
    const clients = new Clients(() => gateway.url, count);
    await gateway.admin("POST", "/rollout", {
      name,
      arms: [{ name: "control" }, { name: "worse", profile }],
      design,
      baselineMillis: BASELINE_MILLIS,
    });
    await gateway.until(name, "its start", ({ phase }) => phase === "running");
    if (profile === SAME) return await staysUp(gateway, name, clients);
    const back = await gateway.until(name, "its end", ({ phase }) => phase === "rolled-back", BACK_MILLIS_MAX);
    await new Promise((resolve) => setTimeout(resolve, AFTER_MILLIS));
    await clients.stop();
    const after = clients.routed.filter(({ at }) => at > Date.parse(back.since));
    await gateway.end();
    const { replay, decisions, unnamed } = await traceOfStorm(trace);
    const windows = clients.routed.filter(({ arm }) => arm === "worse").map((one) => one.window);
    const first = Math.min(...windows);
    const [start, end] = [back.steps.find(({ step }) => step === "start"), back.steps.at(-1)];
    const millis = Date.parse(end!.at) - Date.parse(start!.at);
    const used = new Set(windows).size;
    process.stdout.write(
      `${name.padEnd(11)} ${profile.padEnd(15)} taken back ${(millis / 1000).toFixed(1)} s after the start, in the worse arm's ` +
        `${used === 1 ? "first window" : `window ${used}`} (number ${first}); ${clients.requests} requests, failed ${clients.failed} ` +
        `${clients.failures.join("; ")}; ${replay.decisions} of ${decisions} decisions replayed, ${replay.differences} differences\n` +
        `            ${end!.reason}\n`,
    );
    const stays = after.every(({ arm }) => arm === "");
    return stays && clients.failed === 0 && unnamed === 0 && replay.differences === 0 && replay.decisions === decisions;
  } finally {
    await gateway.end("SIGKILL").catch(() => {});
    rmSync(folder, { recursive: true });
  }
}

/** The policy beside itself, with the same guardrails: nothing is to be taken back. */
async function staysUp(gateway: DrivenGateway, name: string, clients: Clients): Promise<boolean> {
  await new Promise((resolve) => setTimeout(resolve, WATCH_MILLIS));
  await clients.stop();
  const { phase, reason, guardrails } = await gateway.rollout(name);
  const used = guardrails.flatMap(({ value, limit }) => (value === null || limit === null ? [] : [value / limit]));
  const nearest = `nearest guardrail at the end at ${(100 * Math.max(0, ...used)).toFixed(0)} %`;
  process.stdout.write(
    `${name.padEnd(11)} ${SAME.padEnd(15)} ${phase} after ${WATCH_MILLIS / 1000} s (${reason}); ${nearest}; ` +
      `${clients.requests} requests, failed ${clients.failed} ${clients.failures.join("; ")}\n`,
  );
  return phase === "running" && clients.failed === 0;
}
