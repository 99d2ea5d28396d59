import { existsSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import type { Command } from "commander";
import { stringify } from "yaml";
import { ConfigError } from "#config/config-error.ts";
import { loadProfile } from "#config/profile-file.ts";
import { OWN_SIGNALS, type ProfileSignals, scrapeMillisFor, signalsText } from "#config/profile-signals.ts";
import { type Micros, MICROS_PER_SECOND } from "#core/base/units.ts";
import { type Candidate, type Setting } from "#shadow/candidate/candidate.ts";
import { type NamedDesign, namedDesigns } from "#shadow/job/rollout-design.ts";
import { rolloutDocument } from "#shadow/rollout/rollout-document.ts";
import { NOTHING_KNOWN } from "#shadow/rollout/recommendation.ts";
import { type RolloutStudy, rolloutStudy } from "#shadow/rollout/rollout-study.ts";
import { defaultGuardrails, guardrailDocuments } from "#serve/rollout/guardrails.ts";
import { checkOutputFile } from "../output/check-output-file.ts";
import { profileGauges } from "../flag/profile-gauges.ts";
import { notesOf, type Traffic } from "../what-if/what-if-traffic.ts";
import { doLongWork, type LongWork } from "../long-work/long-work.ts";
import { ownTrafficOf } from "./own-traffic.ts";
import { type RolloutPlanFlags, rolloutPlanOptions } from "./rollout-plan-flags.ts";
import { rolloutPlanTable } from "./rollout-plan-table.ts";
import { writeOutput } from "#drive/output-file.ts";

/** Plans a rollout of one profile against another by simulating it on recorded traffic. */
export function rolloutPlanCommand(): Command {
  return rolloutPlanOptions().action(plan);
}

async function plan(path: string, flags: RolloutPlanFlags): Promise<void> {
  if (!existsSync(path))
    throw new ConfigError([`rollout plan: expected a trace or a workload, got ${path}, which is not there`]);
  const [control, other] = armsOf(flags);
  checkOutputFile("--json", flags.json);
  checkOutputFile("--output", flags.write);
  const startedAt = performance.now();
  const planned = await doLongWork(flags, (work) => studied(path, flags, [control, other], work));
  const { traffic, setting, notes, study } = planned;
  const known = notesOn(study);
  for (const line of known) process.stderr.write(`note: ${line}\n`);
  if (flags.json !== undefined)
    writeOutput(flags.json, `${JSON.stringify({ ...study, left: traffic.left, notes: [...notes, ...known] })}\n`);
  if (flags.write !== undefined && study.recommendation.warning === NOTHING_KNOWN) {
    process.stderr.write(`note: no rollout is written to ${flags.write}: ${NOTHING_KNOWN}\n`);
  } else if (flags.write !== undefined) {
    writeOutput(
      flags.write,
      stringify(rolloutDocument(study, `${control.name}-to-${other.name}`, guardrailDocuments())),
    );
  }
  if (flags.json !== "-" && flags.write !== "-") {
    const { name, isGuess } = traffic.engine;
    process.stdout.write(rolloutPlanTable(study, isGuess ? name : undefined));
  }
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  const much = `${setting.workload.length} requests x (3 + ${study.designs.length} designs x ${study.runs} rollouts)`;
  process.stderr.write(`${much} in ${seconds} s\n`);
}

async function studied(
  path: string,
  flags: RolloutPlanFlags,
  [control, other]: readonly [Candidate, Candidate],
  work: LongWork,
) {
  const traffic = await ownTrafficOf(path, flags, work);
  const signals = sharedSignals(traffic, flags);
  const setting = { ...traffic.setting, ...profileGauges(signals) };
  const notes = [...notesOf(traffic), `both arms: ${signalsText(signals)}`];
  for (const line of notes) process.stderr.write(`note: ${line}\n`);
  const { power, level, metric, threads, hours } = flags;
  const study = await rolloutStudy({
    setting,
    control,
    other,
    designs: (spanMicros) => designsOf(setting, spanMicros, flags),
    runs: flags.runs,
    power,
    level,
    figure: metric,
    hours,
    guardrails: defaultGuardrails(),
    observed: observedBy(control, traffic),
    ...(threads !== undefined && { threadsMax: threads }),
    keeping: work,
    progress: (done, all) => work.progress(`${done} of ${all} simulations`),
  });
  return { traffic, setting, notes, study };
}

/** What happened to the requests where the control routed them: it shows what the model does not explain. */
function observedBy(control: Candidate, { inForce, observed }: Traffic): Traffic["observed"] {
  return isDeepStrictEqual(inForce.spec, control.spec) ? observed : undefined;
}

/** One gateway reads gauges for both arms: as the trace shows, else as often as the more demanding arm is made for. */
function sharedSignals({ signals, observed }: Traffic, { arm, scrapeInterval }: RolloutPlanFlags): ProfileSignals {
  if (observed !== undefined || scrapeInterval !== undefined) return signals;
  return { ...OWN_SIGNALS, intervalMillis: scrapeMillisFor(arm.map(loadProfile)), source: "the arms' profiles" };
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

function designsOf(
  setting: Setting,
  spanMicros: Micros,
  { design, window, steps }: RolloutPlanFlags,
): readonly NamedDesign[] {
  const { workload, endpoints } = setting;
  const tenants = new Set<string>();
  let hasSessions = false;
  for (const { session, tenant, blockIds, tokenIds } of workload) {
    // Where prompts are known, the router infers which of them continue one another.
    hasSessions ||= session !== "" || blockIds !== undefined || tokenIds !== undefined;
    if (tenants.size < 2) tenants.add(tenant);
  }
  const all = namedDesigns({
    spanMicros,
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

/** A trace shorter than this shows one hour of a day. */
const SHORT_MICROS = 3600 * MICROS_PER_SECOND;

function notesOn({ spanMicros }: RolloutStudy): string[] {
  if (spanMicros >= SHORT_MICROS) return [];
  const span = `${(spanMicros / (60 * MICROS_PER_SECOND)).toFixed(1)} minutes`;
  return [`the trace covers ${span}; durations beyond it take it that traffic goes on like that`];
}
