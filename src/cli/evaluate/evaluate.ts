import { rareOption } from "#drive/rare-option.ts";
import { existsSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, resolve } from "node:path";
import { Command, Option } from "commander";
import { bundleSections, isBundle } from "#config/blis-bundle.ts";
import { ConfigError } from "#config/config-error.ts";
import { readSimulationPolicies } from "#config/simulation-policies.ts";
import { readYamlFile } from "#config/yaml-file.ts";
import { problemLine } from "#config/problem.ts";
import { runCandidate, type Scenario, type Setting } from "#shadow/candidate/candidate.ts";
import { OBJECTIVES, type ObjectiveName } from "#core/objective-names.ts";
import { objectiveNamed } from "#shadow/job/objective.ts";
import { whole } from "../flag/flag-number.ts";
import { profileGauges } from "../flag/profile-gauges.ts";
import { addTrafficFlags } from "../rollout/traffic-flags.ts";
import { type SloFlags, sloOptions, sloTargets } from "../tune/slo-targets.ts";
import type { TrafficFlags } from "../what-if/what-if-flags.ts";
import { ownTrafficOf } from "../rollout/own-traffic.ts";
import { type CandidateChange, scenarioOf } from "./candidate-change.ts";
import { type AskedPolicy, askedPolicies, BASE_PROFILE, type CandidateBase } from "./candidate-policy.ts";
import { IsolatedEvaluations } from "./isolated-evaluation.ts";
import { setOptionsFromFile } from "./option-file.ts";
import { failedReport, type PolicyReport, policyReport } from "./policy-report.ts";
import type { TemplateSections } from "./policy-templates.ts";

interface EvaluateFlags extends TrafficFlags, SloFlags {
  readonly workload?: string;
  readonly config?: string;
  readonly candidate?: string;
  readonly policyConfig?: string;
  readonly profile?: string;
  readonly form: Form;
  readonly objective: ObjectiveName;
  readonly timeout: number;
  readonly heap: number;
  readonly threads?: number;
}

const STDIN = 0;
const STDIN_CHARS_MAX = 16 * 1024 * 1024;
const TIMEOUT_SECONDS_DEFAULT = 60;
const HEAP_MEGABYTES_DEFAULT = 2_048;

/** What frameworks take: GEPA a score and feedback of each candidate, OpenEvolve metrics with a combined score. */
const FORMS = {
  gepa: (reports: readonly PolicyReport[]): object => ({
    scores: reports.map(({ score }) => score),
    outputs: reports,
    feedback: reports.map(({ reflection }) => reflection),
  }),
  openevolve: (reports: readonly PolicyReport[]): object => {
    const all = reports.map((report) => ({
      metrics: { combined_score: report.score, ...report.sim_fitness, ...featuresOf(report) },
      artifacts: { reflection: report.reflection, ...(report.error !== "" && { error: report.error }) },
      ...report,
    }));
    return { results: all, ...(all.length === 1 && all[0]) };
  },
} as const;

type Form = keyof typeof FORMS;

/** Evaluates candidate policies for a framework that evolves them; `form` is what --form is by default. */
export function evaluateCommand(name = "evaluate", form: Form = "gepa"): Command {
  const command = new Command(name)
    .description(
      name === "evaluate"
        ? "Evaluate candidate policies for frameworks that evolve them: a score and a reflection for each, as JSON."
        : `The same as evaluate --form ${form}.`,
    )
    .addOption(new Option("--form <framework>", "form of the answer").choices(Object.keys(FORMS)).default(form));
  return withAction(withCandidates(command));
}

/** What candidates may differ in (OpenEvolve's feature_dimensions), beside the fitness itself. */
function featuresOf({ sim_metrics }: PolicyReport): Record<string, number> {
  return Object.fromEntries(FEATURES.flatMap((name) => (name in sim_metrics ? [[name, sim_metrics[name]!]] : [])));
}

const FEATURES = ["imbalance", "replica_hours", "requests_per_second"];

function withCandidates(command: Command): Command {
  command
    .argument(
      "[trace]",
      "folder that --record wrote, a recorded workload (Mooncake, Bailian, Azure, WEKA, LMCache, token ids) or a specification of one",
    )
    .option("--workload <file>", "the trace or workload, in place of the argument")
    .addOption(
      rareOption("--config <file>", "YAML file with any of these options by name, for example objective: goodput"),
    )
    .option(
      "--candidate <file>",
      "JSON or YAML with policy_id, profile, policies (sections of a policies file) and dotted parameters, or candidates " +
        "with several of them; - for standard input (default: standard input; with --policy-config that file's policies alone)",
    )
    .option(
      "--policy-config <file>",
      "YAML file with admission, priority, routing, scheduler and autoscale policies, which candidates change",
    )
    .option(
      "--profile <name>",
      `profile that dotted parameters change, unless a candidate names another (default: ${BASE_PROFILE}; of routing.* ` +
        "weights those alone)",
    )
    .addOption(
      new Option("--objective <name>", "what the score measures").choices(OBJECTIVES).default("e2e-mean" as const),
    )
    .addOption(
      rareOption("--timeout <seconds>", "maximum time of one evaluation", whole(1, 86_400), TIMEOUT_SECONDS_DEFAULT),
    )
    .addOption(
      rareOption("--heap <megabytes>", "maximum memory of one evaluation", whole(64, 65_536), HEAP_MEGABYTES_DEFAULT),
    )
    .addOption(
      rareOption("--threads <n>", "concurrent evaluations (default: as many as there are cores)", whole(1, 256)),
    );
  for (const option of sloOptions()) command.addOption(option);
  return addTrafficFlags(command);
}

function withAction(command: Command): Command {
  return command.action(async (trace: string | undefined) => {
    const { config } = command.opts<EvaluateFlags>();
    if (config !== undefined) setOptionsFromFile(command, config);
    const flags = command.opts<EvaluateFlags>();
    if ((trace === undefined) === (flags.workload === undefined))
      throw new ConfigError(["expected one trace or workload, as the argument or as --workload"]);
    const reports = await reportsOf(trace ?? flags.workload!, flags);
    process.stdout.write(`${JSON.stringify(FORMS[flags.form](reports))}\n`);
  });
}

async function reportsOf(path: string, flags: EvaluateFlags): Promise<PolicyReport[]> {
  if (!existsSync(path)) throw new ConfigError([`expected a trace or a workload, got ${path}, which is not there`]);
  const targets = sloTargets(flags);
  if ((flags.objective === "goodput" || flags.objective === "cost") && targets === undefined)
    throw new ConfigError([`--objective ${flags.objective}: expected together with --slo-ttft-millis or its siblings`]);
  const asked = candidatesOf(flags);
  const { setting, inForce } = await ownTrafficOf(path, flags);
  const objective = objectiveNamed(flags.objective, targets ?? {});
  const ground = { objective, base: runCandidate(setting, inForce) };
  const limits = { timeoutMillis: 1000 * flags.timeout, heapMegabytesMax: flags.heap };
  const evaluations = new IsolatedEvaluations(setting, ground, limits);
  const report = async ({ id, spec, signals, change }: AskedPolicy): Promise<PolicyReport> => {
    if ("problems" in spec) return failedReport(id, spec.problems.join("; "));
    const scenario = change && scenarioFor(change, setting);
    if (typeof scenario === "string") return failedReport(id, scenario);
    // --scrape-interval is that of all, as the setting has it.
    const gauges = signals && flags.scrapeInterval === undefined ? profileGauges(signals) : undefined;
    const attempt = await evaluations.run({ name: id, spec, scenario, gauges });
    return attempt.ok
      ? policyReport({ id, spec, change }, inForce.name, objective, attempt.evaluation)
      : failedReport(id, attempt.error);
  };
  return inTurns(asked, flags.threads ?? availableParallelism(), report);
}

/** A text where the change cannot be made to this fleet. */
function scenarioFor(change: CandidateChange, setting: Setting): Scenario | string {
  try {
    return scenarioOf(change, setting);
  } catch (error) {
    if (error instanceof ConfigError) return error.lines.join("; ");
    throw error;
  }
}

/** The results in their order, so many under way at once. */
async function inTurns<T, R>(all: readonly T[], most: number, work: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const turns = Array.from({ length: Math.min(most, all.length) }, async () => {
    for (let at = next++; at < all.length; at = next++) results[at] = await work(all[at]!);
  });
  await Promise.all(turns);
  return results;
}

function candidatesOf({ candidate, policyConfig, profile }: EvaluateFlags): AskedPolicy[] {
  if (policyConfig === undefined) return askedPolicies(documentOf(candidate ?? "-"), { profile });
  readSimulationPolicies(policyConfig);
  const base = baseOf(policyConfig, documentOf(policyConfig), profile);
  const alone = { policy_id: basename(policyConfig).replace(/\.ya?ml$/, "") };
  return askedPolicies(candidate === undefined ? alone : documentOf(candidate), base);
}

/** What a policies file, or a bundle of BLIS, states for all candidates. */
function baseOf(file: string, document: unknown, profile: string | undefined): CandidateBase {
  if (!isBundle(document)) return { profile, policies: document as TemplateSections };
  const { sections, routing } = bundleSections(document, (problem) => problemLine(problem));
  return { profile: routing === undefined ? profile : resolve(file), policies: sections };
}

function documentOf(file: string): unknown {
  if (file !== "-") {
    const yaml = readYamlFile(file);
    if (!yaml.ok) throw new ConfigError(yaml.problems.map((problem) => problemLine(problem)));
    return yaml.value.value;
  }
  const text = readFileSync(STDIN, "utf8");
  if (text.length > STDIN_CHARS_MAX)
    throw new ConfigError([`--candidate: expected at most ${STDIN_CHARS_MAX} characters, got ${text.length}`]);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new ConfigError([
      `--candidate: expected JSON on standard input: ${error instanceof Error ? error.message : String(error)}`,
    ]);
  }
}
