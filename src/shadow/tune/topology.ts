import { availableParallelism } from "node:os";
import { type Candidate, type Setting, settingOf } from "../candidate/candidate.ts";
import { replicaHoursOf } from "../candidate/cost.ts";
import { figuresOf } from "../figure/figures.ts";
import { JobPool } from "../job/job-pool.ts";
import type { WorkKeeping } from "../job/result-memory.ts";
import { isShare, lossesOf, lossOf, type Objective } from "../job/objective.ts";

/** A fleet, and a policy for it. */
export interface Topology {
  /** "8 x H100" */
  readonly fleet: string;
  readonly engines: number;
  readonly profile: string;
  /** With the fleet as its scenario. */
  readonly candidate: Candidate;
}

export interface TopologyRow extends Omit<Topology, "candidate"> {
  /** Of the objective, on the engine as it was fitted; and the worst on the drawn ones. */
  readonly loss: number;
  readonly lossMost: number;
  readonly ttftMeanMicros: number;
  readonly ttftP99Micros: number;
  readonly tpotMeanMicros: number;
  readonly e2eMeanMicros: number;
  /** What is paid for each request that met its targets; of other objectives for each answered one. */
  readonly engineSecondsPerRequest: number;
}

export interface TopologyQuestion {
  /** Its residuals are those of a doubted engine. */
  readonly setting: Setting;
  readonly topologies: readonly Topology[];
  readonly objective: Objective;
  /** Drawn engines beside the fitted one. */
  readonly replicas: number;
  readonly threadsMax?: number;
  readonly keeping?: WorkKeeping;
}

const SECONDS_PER_HOUR = 3_600;

/** What so many engines of a kind do with the traffic; in the order of the question. */
export async function topologyStudy(question: TopologyQuestion): Promise<TopologyRow[]> {
  const { setting, objective, topologies, replicas, keeping, threadsMax = availableParallelism() } = question;
  const work = setting.workload.length * topologies.length * (1 + replicas);
  const pool = new JobPool(setting, { work, threadsMax, keeping });
  try {
    return await Promise.all(
      topologies.map(async ({ candidate, ...topology }): Promise<TopologyRow> => {
        const outcome = await pool.run({ kind: "outcome", candidate });
        const drawn = await Promise.all(
          Array.from({ length: replicas }, async (_, i) => {
            const trial = { candidate, objective, share: 1, replica: i + 1 };
            return lossOf(objective, (await pool.run({ kind: "trial", trial })).losses);
          }),
        );
        const losses = lossesOf(objective, setting.workload, outcome);
        const loss = lossOf(objective, losses);
        const good = isShare(objective) ? losses.filter((one) => one === 0).length : outcome.completed;
        const hours = replicaHoursOf(outcome, settingOf(setting, candidate.scenario).endpoints.length);
        const [ttft, tpot, e2e] = [outcome.ttftMicros, outcome.tpotMicros, outcome.e2eMicros].map(figuresOf);
        return {
          ...topology,
          loss,
          lossMost: Math.max(loss, ...drawn),
          ttftMeanMicros: ttft?.mean ?? NaN,
          ttftP99Micros: ttft?.p99 ?? NaN,
          tpotMeanMicros: tpot?.mean ?? NaN,
          e2eMeanMicros: e2e?.mean ?? NaN,
          engineSecondsPerRequest: (hours * SECONDS_PER_HOUR) / good,
        };
      }),
    );
  } finally {
    await pool.close();
  }
}

/**
 * The fleet with the fewest engine seconds for each good request among those that reach the goodput on every drawn engine;
 * undefined where none does, or the objective knows no targets.
 */
export function cheapest(
  rows: readonly TopologyRow[],
  objective: Objective,
  goodputMin: number,
): TopologyRow | undefined {
  if (!isShare(objective)) return undefined;
  const enough = rows.filter(({ lossMost }) => 1 - lossMost >= goodputMin);
  return enough.toSorted((a, b) => a.engines - b.engines || a.engineSecondsPerRequest - b.engineSecondsPerRequest)[0];
}
