import { writeOutput } from "#drive/output-file.ts";
import { guardrailDocuments } from "#serve/rollout/guardrails.ts";
import { existsSync } from "node:fs";
import type { Command } from "commander";
import { ConfigError } from "#config/config-error.ts";
import { signalsText } from "#config/profile-signals.ts";
import { CANARY_STEPS_DEFAULT } from "#config/rollout-section.ts";
import { exportLlmD } from "#config/export-llm-d.ts";
import { isSmgKind, SMG_KINDS } from "#config/export-smg.ts";
import type { Candidate } from "#shadow/candidate/candidate.ts";
import { namedDesigns } from "#shadow/job/rollout-design.ts";
import { rolloutDocument } from "#shadow/rollout/rollout-document.ts";
import { rolloutStudy } from "#shadow/rollout/rollout-study.ts";
import { doubtedResiduals } from "#shadow/tune/engine-doubt.ts";
import { type Objective, objectiveNamed } from "#shadow/job/objective.ts";
import { cheapest, type TopologyRow, topologyStudy } from "#shadow/tune/topology.ts";
import type { Found } from "#shadow/tune/search.ts";
import { type TuneAnswer, type TuneQuestion, tune } from "#shadow/tune/tune.ts";
import { checkOutputFile } from "../output/check-output-file.ts";
import { doLongWork, type LongWork } from "../long-work/long-work.ts";
import { ownTrafficOf } from "../rollout/own-traffic.ts";
import { notesOf, type Traffic } from "../what-if/what-if-traffic.ts";
import { sloTargets } from "./slo-targets.ts";
import { type TuneFlags, tuneOptions } from "./tune-flags.ts";
import { tunedProfileText, statedSignals, tunedName, writeExports } from "./tune-output.ts";
import { yamlText } from "../output/yaml-text.ts";
import { spaceFor } from "./tune-space.ts";
import { questionDigest, TuneState } from "./tune-state.ts";
import { topologyTable, tuneTable } from "./tune-table.ts";
import { topologiesOf } from "./tune-topology.ts";

/** Searches a better policy for recorded traffic. */
export function tuneCommand(): Command {
  return tuneOptions().action(answer);
}

async function answer(path: string, flags: TuneFlags): Promise<void> {
  if (!existsSync(path))
    throw new ConfigError([`tune: expected a trace or a workload, got ${path}, which is not there`]);
  const objective = objectiveOf(flags);
  checkFiles(flags);
  const startedAt = performance.now();
  const { space, bases } = spaceFor(flags.for, flags.profile, flags.scrapeInterval === undefined);
  const { traffic, notes, result, found, fleets } = await doLongWork(flags, async (work) => {
    const traffic = await ownTrafficOf(path, flags, work);
    const notes = [...notesOf(traffic), signalsNote(traffic, flags)];
    for (const line of notes) process.stderr.write(`note: ${line}\n`);
    const result = await searched(traffic, { objective, space, bases }, flags, work);
    const found = foundIn(result);
    const fleets = flags.engines.length === 0 ? [] : await fleetsFor(traffic, flags, objective, result, found, work);
    return { traffic, notes, result, found, fleets };
  });
  if (flags.json !== "-") {
    process.stdout.write(tuneTable(result));
    const best = cheapest(fleets, objective, flags.goodputMin);
    if (fleets.length > 0) process.stdout.write(topologyTable(fleets, objective, best, flags.goodputMin));
  }
  for (const line of found === undefined ? unwritten(flags) : await written(traffic, flags, result, found))
    process.stderr.write(`note: ${line}\n`);
  if (flags.json !== undefined) writeOutput(flags.json, `${jsonText(result, found, fleets, notes)}\n`);
  process.stderr.write(`${((performance.now() - startedAt) / 1000).toFixed(1)} s\n`);
}

async function searched(
  traffic: Traffic,
  { objective, space, bases }: Pick<TuneQuestion, "objective" | "space" | "bases">,
  flags: TuneFlags,
  work: LongWork,
): Promise<TuneAnswer> {
  const { setting, inForce, observed } = traffic;
  const state = new TuneState(
    flags.state,
    flags.state === undefined ? "" : questionDigest(traffic, objective, flags.split),
  );
  try {
    return await tune({
      setting,
      inForce,
      bases,
      space,
      objective,
      observed,
      share: flags.split,
      trialsMax: flags.trials,
      budgetMillis: 1000 * flags.budget,
      replicas: flags.replicas,
      gainMin: flags.gainMin,
      memory: state,
      now: () => performance.now(),
      ...(flags.threads !== undefined && { threadsMax: flags.threads }),
      keeping: work,
      progress: (trials, best) => {
        work.progress(`${trials} simulations`);
        if (best !== undefined) work.soFar(bestText(best));
      },
    });
  } finally {
    state.save();
    if (state.isTaken)
      process.stderr.write(
        `note: --state: ${flags.state} became another search's meanwhile; nothing of this one is kept\n`,
      );
  }
}

function bestText({ candidate, origin }: Found): string {
  const from = origin === "" ? "" : ` (${origin})`;
  return `best so far, not judged on the conversations held out: ${candidate.name}${from}`;
}

/** What is recommended, under a name of its own; undefined where nothing is. */
function foundIn({ verdict, winner }: TuneAnswer): Candidate | undefined {
  if (verdict.kind !== "better" || winner === undefined) return undefined;
  const { candidate, origin } = winner;
  return { ...candidate, name: origin === "" ? candidate.name : tunedName(candidate.spec) };
}

function signalsNote({ inForce, signals }: Traffic, { scrapeInterval }: TuneFlags): string {
  const others =
    scrapeInterval === undefined ? "; other profiles each under the gauges that it is made for" : "; all others too";
  return `${inForce.name}: ${signalsText(signals)}${others}`;
}

function objectiveOf(flags: TuneFlags): Objective {
  const targets = sloTargets(flags);
  const needsTargets = flags.objective === "goodput" || flags.objective === "cost";
  if (needsTargets && targets === undefined)
    throw new ConfigError([
      `--objective ${flags.objective}: expected together with --slo-ttft-millis, --slo-tpot-millis or --slo`,
    ]);
  return objectiveNamed(flags.objective, targets ?? {});
}

function checkFiles(flags: TuneFlags): void {
  checkOutputFile("--json", flags.json);
  checkOutputFile("--state", flags.state);
  checkOutputFile("--output", flags.writeProfile);
  checkOutputFile("--write-rollout", flags.writeRollout);
  checkOutputFile("--write-llm-d", flags.writeLlmD);
  checkOutputFile("--write-aibrix", flags.writeAibrix);
  checkOutputFile("--write-options", flags.writeOptions);
  if (flags.writeOptions !== undefined && !isSmgKind(flags.for))
    throw new ConfigError([`--write-options: expected together with --for ${SMG_KINDS.join(", ")}, got ${flags.for}`]);
  if (!(flags.split < 1)) throw new ConfigError([`--split: expected a share below 1, got ${flags.split}`]);
  const alone = [flags.pd ? "--pd" : "", flags.kind.length > 0 ? "--kind" : ""].find((flag) => flag !== "");
  if (flags.engines.length === 0 && alone !== undefined)
    throw new ConfigError([`${alone}: expected together with --engines`]);
}

function fleetsFor(
  { setting, inForce, engine }: Traffic,
  flags: TuneFlags,
  objective: Objective,
  { doubt }: TuneAnswer,
  found: Candidate | undefined,
  work: LongWork,
): Promise<TopologyRow[]> {
  const policies = [inForce, ...(found === undefined ? [] : [found])];
  const { engines, kind: kinds, pd, threads } = flags;
  return topologyStudy({
    setting: { ...setting, fleetEvents: [], residuals: doubtedResiduals(setting.residuals, doubt) },
    topologies: topologiesOf(policies, { engines, kinds, kind: engine.name, pd, doubt }),
    objective,
    replicas: TOPOLOGY_REPLICAS,
    keeping: work,
    ...(threads !== undefined && { threadsMax: threads }),
  });
}

const TOPOLOGY_REPLICAS = 3;

function unwritten(flags: TuneFlags): string[] {
  const files = [flags.writeProfile, flags.writeRollout, flags.writeLlmD, flags.writeAibrix, flags.writeOptions];
  return files.some((file) => file !== undefined) ? ["nothing is written, since nothing is recommended"] : [];
}

async function written(
  { setting, inForce }: Traffic,
  flags: TuneFlags,
  result: TuneAnswer,
  found: Candidate,
): Promise<string[]> {
  const { writeProfile, writeRollout, threads } = flags;
  if (writeProfile !== undefined) writeOutput(writeProfile, tunedProfileText(found, result));
  const notes = writeExports(found.spec, flags);
  if (writeRollout === undefined) return notes;
  const { workload, endpoints } = setting;
  const hasSessions = [...workload].some(({ session, blockIds, tokenIds }) => session !== "" || (blockIds ?? tokenIds));
  const study = await doLongWork(flags, (work) =>
    rolloutStudy({
      keeping: work,
      progress: (done, all) => work.progress(`${done} of ${all} simulations of the rollout`),
      setting: { ...setting, residuals: doubtedResiduals(setting.residuals, result.doubt) },
      control: inForce,
      // Both arms are of one gateway, whose gauges are the setting's.
      other: { name: found.name, spec: found.spec },
      designs: (spanMicros) =>
        namedDesigns({
          spanMicros,
          requests: workload.length,
          endpoints: endpoints.length,
          hasSessions,
          hasTenants: false,
          canarySteps: CANARY_STEPS_DEFAULT,
        }).filter(({ design: { kind } }) => kind !== "pools"),
      runs: ROLLOUT_RUNS,
      power: 0.8,
      level: 0.05,
      figure: result.objective.kind === "time" && result.objective.metric === "ttftMicros" ? "ttft.mean" : "e2e.mean",
      hours: [24],
      ...(threads !== undefined && { threadsMax: threads }),
    }),
  );
  const head = `# The policy must know ${found.name} first: its file is a profile of the policy's profiles.\n`;
  writeOutput(writeRollout, head + yamlText(rolloutDocument(study, `to-${found.name}`, guardrailDocuments())));
  return notes;
}

const ROLLOUT_RUNS = 6;

/** The answer, and what is recommended as something to deploy. */
function jsonText(
  result: TuneAnswer,
  found: Candidate | undefined,
  fleets: readonly TopologyRow[],
  notes: readonly string[],
): string {
  const { heldOut } = result;
  const exported = found && exportLlmD(found.spec);
  const deployed = found && {
    policy_id: found.name,
    sim_fitness: { gain: heldOut?.gain.value, gain_low: heldOut?.gain.low, gain_high: heldOut?.gain.high },
    sim_metrics: heldOut?.parts.figures.after,
    config_for_deployment:
      exported?.ok === true ? exported.value : { name: found.name, ...statedSignals(found), ...found.spec },
  };
  return JSON.stringify({ ...result, ...(fleets.length > 0 && { fleets }), ...deployed, notes });
}
