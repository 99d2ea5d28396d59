import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PolicyView } from "#live/admin/policy-admin.ts";
import { switchbackArm } from "#core/rollout/assignment.ts";
import { nameHash } from "#core/base/random.ts";
import { traceOfStorm } from "../policy/storm.ts";
import { Clients, type RoutedTo } from "./clients.ts";
import { DrivenGateway, startEngines } from "./gateway.ts";

const ENGINES = 3;
const WINDOW_MILLIS = 4_000;
/** Between a start and the kill. */
const LIFE_MILLIS = 5_000;
/** Measures that a kill may lose: a quarter of a second, and what a busy machine is late by. */
const LOST_MILLIS_MAX = 1_000;

const DESIGNS = {
  switchback: { kind: "switchback", windowMillis: WINDOW_MILLIS, washoutMillis: 500 },
  split: { kind: "split", by: "session", windowMillis: 600_000 },
} as const;

/**
 * A gateway is killed with -9 in mid-rollout, again and again: it goes on with the same windows in the same order, no
 * conversation changes its arm, policy versions go on counting, and what it recorded replays alike.
 */
export async function restart(kills: number, clients: number): Promise<boolean> {
  const engines = await startEngines(ENGINES, "emulated-default");
  let isWell = true;
  for (const [name, design] of Object.entries(DESIGNS))
    isWell = (await killed(name, design, engines, kills, clients)) && isWell;
  return isWell;
}

async function killed(
  name: string,
  design: (typeof DESIGNS)[keyof typeof DESIGNS],
  engines: readonly string[],
  kills: number,
  count: number,
): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-rollout-restart-"));
  const trace = join(folder, "trace");
  const gateway = new DrivenGateway(folder, {
    listen: { port: 0 },
    endpoints: engines.map((url) => ({ url })),
    policy: { directory: join(folder, "state") },
    rollout: { lookMillis: 250 },
    record: { directory: trace },
  });
  try {
    await gateway.start();
    const clients = new Clients(() => gateway.url, count);
    await gateway.admin("POST", "/policy", { limits: { attemptsMax: 4 } });
    const arms = [{ name: "control" }, { name: "other", profile: "llm-d" }];
    // A start is slow, whichever arm meets it: only answers that break end this one.
    const guardrails = [{ figure: "error-rate", absoluteMaxShare: 0.5 }];
    await gateway.admin("POST", "/rollout", { name, arms, design, guardrails, baselineMillis: 0 });
    const before: number[] = [];
    const after: number[] = [];
    for (let i = 0; i < kills; i++) {
      await new Promise((resolve) => setTimeout(resolve, LIFE_MILLIS));
      before.push(countOf(await gateway.rollout(name)));
      clients.pause();
      await gateway.end("SIGKILL");
      await gateway.start();
      after.push(countOf(await gateway.rollout(name)));
      clients.resume();
    }
    await new Promise((resolve) => setTimeout(resolve, LIFE_MILLIS));
    const last = await gateway.rollout(name);
    const promoted = (await gateway.admin("POST", `/rollout/${name}/promote`, { arm: "other", evenSo: true })) as {
      outcome: string;
    };
    await clients.stop();
    await gateway.end("SIGKILL");
    await gateway.start();
    const policy = (await gateway.admin("GET", "/policy")) as PolicyView;
    const ended = await gateway.rollout(name);
    await gateway.end();
    const { replay, decisions, unnamed } = await traceOfStorm(trace);
    const wrong =
      design.kind === "switchback" ? wrongWindows(name, clients.routed) : movedConversations(clients.routed);
    const lost = before.map((one, i) => one - after[i]!);
    // The first life is the first `LIFE_MILLIS`, without what other lives brought.
    const lostMillis = (Math.max(...lost) / before[0]!) * LIFE_MILLIS;
    const isWell =
      last.phase === "running" &&
      promoted.outcome === "applied" &&
      ended.phase === "promoted" &&
      policy.version === 3 &&
      policy.defaultProfile === "llm-d" &&
      wrong.length === 0 &&
      lostMillis <= LOST_MILLIS_MAX &&
      clients.failed === 0 &&
      unnamed === 0 &&
      replay.differences === 0 &&
      replay.decisions === decisions;
    process.stdout.write(
      `${name.padEnd(11)} killed ${kills} times: still ${last.phase}, ${last.arms.map(({ total }) => total.requests).join(" and ")} requests counted, ` +
        `of which a kill lost ${lost.join(", ")} (of ${lostMillis.toFixed(0)} ms at most); ${design.kind === "switchback" ? "requests out of the windows' order" : "conversations that changed their arm"}: ${wrong.length} ${wrong.slice(0, 3).join(" ")}\n` +
        `            ${clients.requests} requests, failed ${clients.failed} ${clients.failures.join("; ")}; promoted: version ${policy.version}, ${policy.defaultProfile}, stands after a kill; ` +
        `${replay.runs} runs, ${replay.decisions} of ${decisions} decisions replayed, ${replay.differences} differences ${replay.first?.what ?? ""} ${replay.reasons.join("; ")}\n`,
    );
    return isWell;
  } finally {
    await gateway.end("SIGKILL").catch(() => {});
    rmSync(folder, { recursive: true });
  }
}

function countOf({ arms }: { readonly arms: readonly { readonly total: { readonly requests: number } }[] }): number {
  return arms.reduce((sum, { total }) => sum + total.requests, 0);
}

/** Requests on another arm than the order of windows has, which follows from the name alone. */
function wrongWindows(name: string, routed: readonly RoutedTo[]): string[] {
  const arms = ["control", "other"].map((arm) => ({ name: arm, profile: "" }));
  const design = { kind: "switchback", windowMicros: 1, washoutMicros: 0 } as const;
  const plan = { name, model: "", seed: nameHash(name), arms, design, cooldownMicros: 0 };
  const placed = routed.filter(({ window }) => window >= 0);
  return placed
    .filter(({ arm, window }) => arms[switchbackArm(plan, window)]!.name !== arm)
    .map(({ arm, window }) => `${arm} in ${window}`);
}

function movedConversations(routed: readonly RoutedTo[]): string[] {
  const arms = new Map<string, Set<string>>();
  for (const { conversation, arm, window } of routed) {
    if (window >= 0) arms.set(conversation, (arms.get(conversation) ?? new Set()).add(arm));
  }
  return [...arms].filter(([, seen]) => seen.size > 1).map(([conversation]) => conversation);
}
