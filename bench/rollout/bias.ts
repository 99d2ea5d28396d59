import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import type { PlannedFigureKey } from "#shadow/job/rollout-sample.ts";
import { namedDesigns } from "#shadow/job/rollout-design.ts";
import { rolloutStudy } from "#shadow/rollout/rollout-study.ts";
import { CASES, type ClosedLoopCase } from "../closed-loop/case.ts";
import { prepareWorkload } from "../closed-loop/prepared-workload.ts";
import { candidateNamed, traceSetting } from "./study-setting.ts";

const PAIRS: readonly (readonly [string, string])[] = [
  ["gnomon", "round-robin"],
  ["round-robin", "prefix-affinity"],
  ["gnomon", "least-loaded"],
];
const KEYS: readonly PlannedFigureKey[] = ["ttft.mean", "e2e.mean"];
const WINDOW_SECONDS = 20;
const RUNS = 6;
const [MOONCAKE, MOONCAKE_HIGH, WEKA] = CASES as [ClosedLoopCase, ClosedLoopCase, ClosedLoopCase];
/** Two loads of each trace; at the higher ones round-robin cannot keep up, and its queues grow to the end. */
const LOADS: readonly (readonly [string, ClosedLoopCase])[] = [
  ["mooncake-moderate", MOONCAKE],
  ["mooncake-high", MOONCAKE_HIGH],
  ["weka-light", { ...WEKA, sessionsPerSecond: 2 }],
  ["weka-moderate", WEKA],
];
/** More than are sent live, so that windows are many. */
const REQUESTS = 6_000;
const COPIES = 45;
const NAME_CHARS = 30;
const CELL_CHARS = 17;

/**
 * What each design would show of a change, beside the truth: the whole fleet by one against the whole fleet by the other on
 * the same requests. Arms that share engines share queues and caches: a split lets one arm eat what the other saves. The
 * cases are those of the closed-loop bench, which run live as well.
 */
export async function bias(traces: string, load: string | undefined): Promise<void> {
  print(`Change of the mean, ms: the truth, and what each design shows (+- its standard error; ${RUNS} rollouts each)`);
  const folder = mkdtempSync(join(tmpdir(), "gnomon-bias-"));
  try {
    for (const [name, one] of LOADS) {
      if (load !== undefined && name !== load) continue;
      await biasOf(name, one, traces, folder);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function biasOf(name: string, one: ClosedLoopCase, traces: string, folder: string): Promise<void> {
  const file = join(folder, `${name}.jsonl`);
  const more = { ...one, requests: REQUESTS, copies: one.copies === 1 ? 1 : COPIES };
  await prepareWorkload(more, join(traces, one.path), file, 1);
  const setting = await traceSetting(file, { endpoints: one.engines, engine: one.engine, limit: REQUESTS });
  for (const [control, other] of PAIRS) {
    const study = await rolloutStudy({
      setting,
      control: candidateNamed(control),
      other: candidateNamed(other),
      designs: (spanMicros) =>
        namedDesigns({
          spanMicros,
          requests: setting.workload.length,
          endpoints: one.engines,
          hasSessions: true,
          hasTenants: false,
          canarySteps: [5],
          windowMicros: [WINDOW_SECONDS * MICROS_PER_SECOND],
        }),
      runs: RUNS,
      power: 0.8,
      level: 0.05,
      figure: "e2e.mean",
      hours: [24],
    });
    const minutes = (study.spanMicros / 60e6).toFixed(1);
    print(`\n${name}, ${study.requests} requests in ${minutes} minutes: ${control} -> ${other}`);
    print(
      ["".padEnd(NAME_CHARS), ...KEYS.flatMap((key) => [key, "bias"]).map((head) => head.padStart(CELL_CHARS))].join(
        " ",
      ),
    );
    const truth = KEYS.flatMap((key) => {
      const metric = key === "ttft.mean" ? "ttftMicros" : "e2eMicros";
      const [before, after] = [study.truth.control, study.truth.other].map((arm) => arm[metric]?.mean ?? NaN);
      return [`${ms(before!)} ${signed(after! - before!)}`, ""];
    });
    print(["control, truth".padEnd(NAME_CHARS), ...truth.map((cell) => cell.padStart(CELL_CHARS))].join(" "));
    for (const { name: design, figures } of study.designs) {
      const cells = KEYS.flatMap((key) => {
        const { estimate, bias: off, biasError } = figures[key];
        return [signed(estimate), `${signed(off)} +- ${ms(biasError ?? NaN)}`];
      });
      print([design.padEnd(NAME_CHARS), ...cells.map((cell) => cell.padStart(CELL_CHARS))].join(" "));
    }
  }
}

function ms(micros: number): string {
  return (micros / 1000).toFixed(Math.abs(micros) < 100_000 ? 1 : 0);
}

function signed(micros: number): string {
  return `${micros < 0 ? "" : "+"}${ms(micros)}`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
