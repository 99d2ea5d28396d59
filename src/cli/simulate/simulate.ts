import { Command } from "commander";
import { type ProfileSignals, signalsText } from "#config/profile-signals.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { counterfactuals } from "#sim/counterfactual.ts";
import { DecisionTrace } from "#sim/result/decision-trace.ts";
import { fitnessOf } from "#sim/result/fitness.ts";
import { foreseeing } from "#sim/foreseeing.ts";
import { simulate, type SimulationResult } from "#sim/simulate.ts";
import type { SimulationOptions } from "#sim/setting/simulation-options.ts";
import { checkOutputFile } from "../output/check-output-file.ts";
import { clusterPlan } from "./simulate-plan.ts";
import { predictionWords } from "./prediction-words.ts";
import type { SimulateFlags } from "./simulate-flags.ts";
import { addSimulateFlags } from "./simulate-options.ts";
import { simulationTable } from "./simulate-table.ts";
import { parseFitness } from "./fitness-flag.ts";
import { workloadPlan } from "./simulate-workload.ts";
import { writeWholeFile } from "#trace/export/whole-file.ts";

/** `gnomon simulate`: the results to standard output, everything else to standard error. */
export function simulateCommand(): Command {
  const command = new Command("simulate").description(
    "Run a cluster of engines under a routing policy in virtual time.",
  );
  return addSimulateFlags(command).action(async (flags: SimulateFlags) => {
    checkOutputFile("--output", flags.resultsPath);
    checkOutputFile("--requests-path", flags.requestsPath);
    const { result, results, seconds, cluster, gauges } = await simulated(flags, progressLine());
    const tokensMax = cluster.engines[0]!.config.modelTokensMax;
    const { "too-long": tooLong } = result.requests;
    if (tooLong > 0)
      process.stderr.write(
        `note: ${tooLong} of ${result.outcomes.length} requests are too long for the engine, which takes ${tokensMax} ` +
          "tokens; --engine or --kv-gpu-blocks chooses a larger one\n",
      );
    for (const line of predictionWords(cluster.engines[0]!.config, flags.modelConfig && (flags.hardware ?? "H100")))
      process.stderr.write(`${line}\n`);
    const text = `${JSON.stringify(results, null, 2)}\n`;
    if (flags.resultsPath !== undefined) writeWholeFile(flags.resultsPath, text);
    if (flags.requestsPath !== undefined) writeWholeFile(flags.requestsPath, requestLines(result));
    process.stdout.write(flags.json ? text : simulationTable(result, results));
    if (flags.signals !== "oracle") process.stderr.write(`${cluster.profile.name}: ${signalsText(gauges)}\n`);
    process.stderr.write(
      `${result.outcomes.length} requests, ${(result.endedAt / MICROS_PER_SECOND).toFixed(1)} simulated seconds in ` +
        `${seconds.toFixed(2)} s, ${result.events} events\n`,
    );
  });
}

/** Runs what the flags describe: the results as they are written, and the run that they are of. */
export async function simulated(flags: SimulateFlags, progress: NonNullable<SimulationOptions["progress"]>) {
  // Reading the whole configuration's schema takes a while.
  const set = flags.set.length === 0 ? undefined : (await import("./simulated-rules.ts")).simulatedRules(flags.set);
  const { gauges, ...cluster } = clusterPlan(flags, set);
  const fitness = flags.fitnessWeights === undefined ? {} : parseFitness(flags.fitnessWeights);
  const workload = await workloadPlan(flags, cluster.router.blockTokens);
  const traced = flags.traceLevel === "decisions";
  const trace = traced || flags.summarizeTrace ? new DecisionTrace(1 + flags.counterfactualK, traced) : undefined;
  const scaling = cluster.scaling && foreseeing(cluster.scaling, cluster, () => workload.arrivals());
  const options = {
    ...cluster,
    ...(scaling && { scaling }),
    arrivals: workload.arrivals(),
    ...(trace && { observe: trace.observe }),
    progress,
  };
  const startedAt = performance.now();
  const result = simulate(options, workload.targets);
  const seconds = (performance.now() - startedAt) / 1000;
  const retried = retriedOf(flags, result);
  const again = () => ({ ...clusterPlan(flags, set), ...(scaling && { scaling }), arrivals: workload.arrivals() });
  const results = {
    ...resultsOf(result, cluster.profile.name, workload.name),
    signals: signalsUsed(flags, gauges),
    fitness: fitnessOf(result.metrics, fitness),
    ...(trace && flags.summarizeTrace && { summary: trace.summary() }),
    ...(trace && traced && { trace: { decisions: trace.decisions, notKept: trace.notKept } }),
    ...(retried > 0 && { counterfactuals: counterfactuals(again, flags.counterfactualK, retried) }),
  };
  return { result, results, seconds, cluster, gauges };
}

/** Requests that retried decisions simulate together, unless a number of them is asked for; and decisions at most. */
const RETRIED_REQUESTS = 500_000;
const RETRIED_MAX = 50;

/** Decisions whose other candidates are tried. The same on every machine. */
function retriedOf(
  { counterfactualK, counterfactualDecisions }: SimulateFlags,
  { outcomes }: SimulationResult,
): number {
  if (counterfactualK === 0) return 0;
  if (counterfactualDecisions !== undefined) return counterfactualDecisions;
  const most = Math.floor(RETRIED_REQUESTS / Math.max(1, outcomes.length * counterfactualK));
  return Math.min(RETRIED_MAX, Math.max(1, most));
}

/** How the router knew engines' gauges. */
function signalsUsed({ signals: mode }: SimulateFlags, { intervalMillis, delayMillis }: ProfileSignals) {
  return mode === "oracle" ? { mode } : { mode, intervalMillis, ...(mode === "scrape" && { delayMillis }) };
}

/** A line to standard error now and then. */
function progressLine(): (at: number, arrived: number, ended: number) => void {
  let saidAt = performance.now();
  return (at, arrived, ended) => {
    const now = performance.now();
    if (now - saidAt < PROGRESS_MILLIS) return;
    saidAt = now;
    process.stderr.write(
      `${(at / MICROS_PER_SECOND).toFixed(0)} simulated seconds, ${arrived} arrived, ${ended} ended\n`,
    );
  };
}

const PROGRESS_MILLIS = 2_000;

function resultsOf(result: SimulationResult, policyId: string, workloadId: string) {
  const { outcomes: _outcomes, events: _events, endedAt, stages, scaling, ...rest } = result;
  const ofStages = Object.fromEntries(stages.map(({ name, figures }) => [name, figures]));
  return { policyId, workloadId, simDurationMicros: endedAt, ...rest, ...ofStages, ...(scaling && { scaling }) };
}

function* requestLines({ outcomes, endpoints }: SimulationResult): Generator<string> {
  for (let row = 0; row < outcomes.length; row++) {
    const line = {
      id: outcomes.ids[row],
      status: outcomes.statusOf(row),
      endpoint: endpoints[outcomes.endpoint[row]!]?.endpoint,
      prefillEndpoint: endpoints[outcomes.prefillEndpoint[row]!]?.endpoint,
      arrivalAt: outcomes.arrivalAt[row]!,
      queueDelayMicros: known(outcomes.queueDelay[row]!),
      ttftMicros: known(outcomes.ttft[row]!),
      e2eMicros: known(outcomes.e2e[row]!),
      promptTokens: outcomes.promptTokens[row]!,
      cachedTokens: outcomes.cachedTokens[row]!,
      expectedTokens: outcomes.expectedTokens[row]!,
      outputTokens: outcomes.outputTokens[row]!,
      preemptions: outcomes.preemptions[row]!,
      attempts: outcomes.attempts[row]!,
      priority: outcomes.priority[row]!,
      sloClass: outcomes.classes[outcomes.sloClass[row]!],
      tenant: outcomes.tenants[outcomes.tenant[row]!],
    };
    yield `${JSON.stringify(line)}\n`;
  }
}

function known(micros: number): number | undefined {
  return Number.isNaN(micros) ? undefined : micros;
}
