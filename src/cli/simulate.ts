import { createWriteStream, writeFileSync } from "node:fs";
import { once } from "node:events";
import { Command } from "commander";
import { simulate, type SimulationResult } from "#sim/simulate.ts";
import { clusterPlan } from "./simulate-plan.ts";
import { addSimulateFlags, type SimulateFlags } from "./simulate-flags.ts";
import { simulationTable } from "./simulate-table.ts";
import { workloadPlan } from "./simulate-workload.ts";

/** `gnomon simulate`: the results to standard output, everything else to standard error. */
export function simulateCommand(): Command {
  const command = new Command("simulate").description(
    "Run a cluster of engines under a routing policy in virtual time.",
  );
  return addSimulateFlags(command).action(async (flags: SimulateFlags) => {
    const cluster = clusterPlan(flags);
    const workload = await workloadPlan(flags, cluster.router.blockTokens);
    const startedAt = performance.now();
    const result = simulate({ ...cluster, arrivals: workload.arrivals() });
    const seconds = (performance.now() - startedAt) / 1000;
    const results = resultsOf(result, cluster.profile.name, workload.name);
    const text = `${JSON.stringify(results, null, 2)}\n`;
    if (flags.resultsPath !== undefined) writeFileSync(flags.resultsPath, text);
    if (flags.requestsPath !== undefined) await writeRequests(flags.requestsPath, result);
    process.stdout.write(flags.json ? text : simulationTable(result));
    process.stderr.write(
      `${result.outcomes.length} requests, ${(result.endedAt / 1e6).toFixed(1)} simulated seconds in ` +
        `${seconds.toFixed(2)} s, ${result.events} events\n`,
    );
  });
}

function resultsOf(result: SimulationResult, policyId: string, workloadId: string) {
  const { outcomes: _outcomes, events: _events, endedAt, ...rest } = result;
  return { policyId, workloadId, simDurationMicros: endedAt, ...rest };
}

async function writeRequests(path: string, { outcomes, endpoints }: SimulationResult): Promise<void> {
  const file = createWriteStream(path);
  for (let row = 0; row < outcomes.length; row++) {
    const line = {
      id: outcomes.ids[row],
      status: outcomes.statusOf(row),
      endpoint: endpoints[outcomes.endpoint[row]!]?.endpoint,
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
    if (!file.write(`${JSON.stringify(line)}\n`)) await once(file, "drain");
  }
  file.end();
  await once(file, "close");
}

function known(micros: number): number | undefined {
  return Number.isNaN(micros) ? undefined : micros;
}
