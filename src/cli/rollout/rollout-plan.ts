import { existsSync, writeFileSync } from "node:fs";
import type { Command } from "commander";
import { ConfigError } from "#config/config-error.ts";
import { loadProfile } from "#config/profile-file.ts";
import { MICROS_PER_SECOND } from "#core/units.ts";
import { type Candidate, type Setting, spanOf } from "#shadow/question/candidate.ts";
import { type NamedDesign, namedDesigns } from "#shadow/rollout/rollout-design.ts";
import { rolloutStudy } from "#shadow/rollout/rollout-study.ts";
import { checkOutputFile } from "../check-output-file.ts";
import { notesOf, trafficOf } from "../what-if/what-if-traffic.ts";
import { type RolloutPlanFlags, rolloutPlanOptions } from "./rollout-plan-flags.ts";
import { rolloutPlanTable } from "./rollout-plan-table.ts";

/** Plans a rollout of one profile against another by simulating it on recorded traffic. */
export function rolloutPlanCommand(): Command {
  return rolloutPlanOptions().action(plan);
}

async function plan(path: string, flags: RolloutPlanFlags): Promise<void> {
  if (!existsSync(path))
    throw new ConfigError([`rollout plan: expected a trace or a workload, got ${path}, which is not there`]);
  const [control, other] = armsOf(flags);
  checkOutputFile("--json", flags.json);
  const startedAt = performance.now();
  const traffic = await trafficOf(path, flags);
  const { setting } = traffic;
  const designs = designsOf(setting, flags);
  const runs = flags.runs ?? affordableRuns(setting, designs.length);
  const notes = [...notesOf(traffic), ...notesOn(setting)];
  for (const line of notes) process.stderr.write(`note: ${line}\n`);
  const { power, level, metric, threads, hours } = flags;
  const study = await rolloutStudy({
    setting,
    control,
    other,
    designs,
    runs,
    power,
    level,
    figure: metric,
    hours,
    ...(threads !== undefined && { threadsMax: threads }),
    progress: (done, all) => process.stderr.isTTY && process.stderr.write(`\r${done} of ${all} simulations`),
  });
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
  if (flags.json !== undefined) write(flags.json, `${JSON.stringify({ ...study, left: traffic.left, notes })}\n`);
  if (flags.json !== "-") {
    const { name, isGuess } = traffic.engine;
    process.stdout.write(rolloutPlanTable(study, isGuess ? name : undefined));
  }
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const much = `${setting.workload.length} requests x (3 + ${designs.length} designs x ${runs} rollouts)`;
  process.stderr.write(`${much} in ${seconds} s\n`);
}

function armsOf({ arm }: RolloutPlanFlags): readonly [Candidate, Candidate] {
  const [control, other, ...more] = arm.map((name): Candidate => {
    const { name: own, spec } = loadProfile(name);
    return { name: own, spec };
  });
  if (control === undefined || other === undefined || more.length > 0)
    throw new ConfigError([`--arm: expected two profiles, the control first, got ${arm.length}`]);
  return [control, other];
}

function designsOf(setting: Setting, { design, window, steps }: RolloutPlanFlags): readonly NamedDesign[] {
  const { workload, endpoints } = setting;
  const tenants = new Set<string>();
  let hasSessions = false;
  for (const { session, tenant, blockIds, tokenIds } of workload) {
    // Where prompts are known, the router infers which of them continue one another.
    hasSessions ||= session !== "" || blockIds !== undefined || tokenIds !== undefined;
    if (tenants.size < 2) tenants.add(tenant);
  }
  const all = namedDesigns({
    spanMicros: spanOf(setting),
    requests: workload.length,
    endpoints: endpoints.length,
    hasSessions,
    hasTenants: tenants.size > 1,
    canarySteps: steps,
    ...(window.length > 0 && { windowMicros: window.map((seconds) => Math.round(seconds * MICROS_PER_SECOND)) }),
  });
  const chosen = all.filter(({ design: { kind } }) => design.length === 0 || design.includes(kind));
  if (chosen.length === 0) throw new ConfigError(["--design: pools need two endpoints or more"]);
  return chosen;
}

/** Requests that all rollouts simulate together, unless more are asked for: about a minute on two cores. */
const REQUESTS_AFFORDED = 1_500_000;
/** Fewer show little of what chance does; more narrow it by little. */
const RUNS_MIN = 3;
const RUNS_MAX = 40;

function affordableRuns({ workload }: Setting, designs: number): number {
  const affordable = Math.floor(REQUESTS_AFFORDED / (workload.length * designs));
  return Math.min(RUNS_MAX, Math.max(RUNS_MIN, affordable));
}

/** A trace shorter than this shows one hour of a day. */
const SHORT_HOURS = 1;

function notesOn(setting: Setting): string[] {
  const hours = spanOf(setting) / (3600 * MICROS_PER_SECOND);
  if (hours >= SHORT_HOURS) return [];
  const span = `${(60 * hours).toFixed(1)} minutes`;
  return [`the trace covers ${span}; durations beyond it take it that traffic goes on like that`];
}

function write(file: string, text: string): void {
  if (file === "-") process.stdout.write(text);
  else writeFileSync(file, text);
}
