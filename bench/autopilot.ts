/**
 * The whole loop of the autopilot on a gateway with its embedded emulated fleet: on little traffic a search is refused
 * with its reason; on more it proposes; the proposal is accepted by the admin's call, becomes a rollout with the usual
 * guardrails, and is promoted once its difference is found, or taken back. What was recorded must replay alike. Ends
 * with exit code 1 where something is not as it must be.
 *
 *     npx node bench/autopilot.ts [--in-force always-busiest] [--profiles gnomon,llm-d,round-robin] [--trials 12] [--clients 120]
 *         [--seconds 200]
 *
 * --profiles all begins with all that come with gnomon, within the default budget.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { AutopilotView, ProposalView } from "#live/autopilot/autopilot-desk.ts";
import type { PolicyView } from "#live/policy/policy-desk.ts";
import type { RolloutView } from "#live/rollout/rollout-view.ts";
import { endAll } from "./children.ts";
import { traceOfStorm } from "./policy/storm.ts";
import { Clients } from "./rollout-drive/clients.ts";
import { DrivenGateway } from "./rollout-drive/gateway.ts";

const { values: flags } = parseArgs({
  options: {
    "in-force": { type: "string", default: "always-busiest" },
    profiles: { type: "string", default: "gnomon,llm-d,round-robin" },
    trials: { type: "string" },
    clients: { type: "string", default: "120" },
    seconds: { type: "string", default: "200" },
  },
});
const SEARCH_MILLIS = 6_000;
const WINDOW_MILLIS = 3_000;
const POLL_MILLIS = 200;
/** Compared blocks of windows after which an operator decides in any case. */
const BLOCKS = 8;
const isAll = flags.profiles === "all";
const endsAt = performance.now() + 1_000 * Number(flags.seconds);

const folder = mkdtempSync(join(tmpdir(), "gnomon-autopilot-"));
const trace = join(folder, "trace");
const gateway = new DrivenGateway(folder, {
  listen: { port: 0 },
  routing: { profile: flags["in-force"] },
  emulate: { count: 3, engine: "emulated-default" },
  shadow: { enabled: true, engine: "emulated-default", intervalMillis: 5_000, cpuShareMax: 0.6 },
  autopilot: {
    enabled: true,
    intervalMillis: SEARCH_MILLIS,
    windowMillis: WINDOW_MILLIS,
    ...(!isAll && { profiles: flags.profiles.split(",") }),
    ...((!isAll || flags.trials !== undefined) && { trialsMax: Number(flags.trials ?? 12) }),
  },
  rollout: { lookMillis: 250 },
  record: { directory: trace },
});
const all: Clients[] = [];
try {
  process.exitCode = (await loop()) ? 0 : 1;
} finally {
  for (const clients of all) await clients.stop();
  await gateway.end("SIGKILL").catch(() => {});
  rmSync(folder, { recursive: true });
  endAll();
}

async function loop(): Promise<boolean> {
  await gateway.start();
  all.push(new Clients(() => gateway.url, 1, true));
  const refused = await until("a search of little traffic", async () => {
    const view = await autopilot();
    return (view.searches["refused"] ?? 0) > 0 ? view : undefined;
  });
  print(`little traffic: refused: ${refused.latest}`);
  const since = performance.now();
  all.push(new Clients(() => gateway.url, Number(flags.clients), true));
  const proposal = await until("a proposal", async () =>
    (await autopilot()).proposals.find(({ state }) => state === "waiting"),
  );
  const { searches } = await autopilot();
  print(
    `proposed ${((performance.now() - since) / 1000).toFixed(0)} s after the traffic came, in search ` +
      `${Object.values(searches).reduce((sum, count) => sum + count, 0)} (${JSON.stringify(searches)}): ${proposal.name}: mean E2E ` +
      `${percent(proposal.gain)} (${percent(proposal.gainLow)} to ${percent(proposal.gainHigh)}) over ${proposal.inForce}, ` +
      `judged on ${proposal.sessions} conversations`,
  );
  await gateway.admin("POST", `/autopilot/${proposal.name}/accept`);
  const name = `to-${proposal.name}`;
  const rollout = await until("the rollout's difference", async () => {
    const one = await gateway.rollout(name);
    return isOver(one) || isFound(one) ? one : undefined;
  });
  const isPromoted = await ended(name, rollout, proposal);
  const policy = (await gateway.admin("GET", "/policy")) as PolicyView;
  print(`the policy is ${policy.defaultProfile}'s, version ${policy.version}`);
  for (const clients of all) await clients.stop();
  await gateway.end();
  const { replay, decisions } = await traceOfStorm(trace);
  const failed = all.reduce((sum, one) => sum + one.failed, 0);
  print(
    `${all.reduce((sum, one) => sum + one.requests, 0)} requests, failed ${failed} ${all.flatMap(({ failures }) => failures).join("; ")}; ` +
      `${replay.decisions} of ${decisions} decisions replayed, ${replay.differences} differences ${replay.first?.what ?? ""}`,
  );
  const decides = isPromoted ? proposal.name : flags["in-force"];
  return policy.defaultProfile === decides && failed === 0 && replay.differences === 0;
}

/** The operator promotes what is found to be better, and takes back the rest. */
async function ended(name: string, rollout: RolloutView, proposal: ProposalView): Promise<boolean> {
  const e2e = rollout.differences.find(({ metric, figure }) => metric === "e2e" && figure === "mean");
  const control = rollout.arms[0]!.total.times.e2e.meanMillis ?? NaN;
  const part = (millis: number | null | undefined) => percent(-(millis ?? NaN) / control);
  print(
    `rollout ${rollout.phase} with ${rollout.guardrails.length} guardrails: measured ${part(e2e?.meanMillis)} ` +
      `(${part(e2e?.highMillis)} to ${part(e2e?.lowMillis)}) of ${e2e?.count} blocks, predicted ${percent(proposal.gain)}; ${rollout.reason}`,
  );
  if (rollout.phase === "rolled-back") return false;
  const isBetter = (e2e?.highMillis ?? 0) < 0;
  const step = isBetter ? "promote" : "rollback";
  await gateway.admin("POST", `/rollout/${name}/${step}`, isBetter ? { arm: "other" } : {});
  print(isBetter ? "promoted" : "taken back: no gain was found");
  return isBetter;
}

function isOver({ phase }: RolloutView): boolean {
  return phase === "rolled-back" || phase === "paused";
}

function isFound({ differences }: RolloutView): boolean {
  const e2e = differences.find(({ metric, figure }) => metric === "e2e" && figure === "mean");
  return e2e !== undefined && (e2e.count >= BLOCKS || (e2e.highMillis ?? 0) < 0);
}

async function autopilot(): Promise<AutopilotView> {
  return (await gateway.admin("GET", "/autopilot")) as AutopilotView;
}

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > endsAt) throw new Error(`waited in vain for ${what}: ${JSON.stringify(await autopilot())}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MILLIS));
  }
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
