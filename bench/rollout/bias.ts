import { availableParallelism } from "node:os";
import { MICROS_PER_SECOND } from "#core/units.ts";
import { type Setting, spanOf } from "#shadow/question/candidate.ts";
import { namedDesigns } from "#shadow/rollout/rollout-design.ts";
import { rolloutStudy } from "#shadow/rollout/rollout-study.ts";
import { candidateNamed } from "./study-setting.ts";

const PAIRS: readonly (readonly [string, string])[] = [
  ["gnomon", "round-robin"],
  ["round-robin", "prefix-affinity"],
  ["gnomon", "least-loaded"],
];
const COLUMN_CHARS = 19;

export interface BiasTraffic {
  readonly name: string;
  readonly setting: Setting;
}

/**
 * What each design would show of the change of mean E2E, beside the truth: the whole fleet by one against the whole fleet by
 * the other on the same arrivals. Arms that share engines share queues and caches: a split lets one arm eat what the other
 * saves.
 */
export async function bias(traffics: readonly BiasTraffic[], runs: number, windowSeconds: number): Promise<void> {
  print(`Change of mean E2E, ms: the truth, and what each design shows (+- its standard error; ${runs} rollouts each)`);
  let headed = false;
  for (const { name, setting } of traffics) {
    for (const [control, other] of PAIRS) {
      const rows = [...setting.workload];
      const designs = namedDesigns({
        spanMicros: spanOf(setting),
        requests: rows.length,
        endpoints: setting.endpoints.length,
        hasSessions: rows.some(({ session, blockIds }) => session !== "" || blockIds !== undefined),
        hasTenants: false,
        canarySteps: [5],
        windowMicros: [windowSeconds * MICROS_PER_SECOND],
      }).filter((design) => design.name !== "split by request" && design.name !== "canary at 25 %");
      if (!headed) {
        const heads = ["control", "truth", ...designs.map((design) => design.name)];
        print(
          `${"traffic".padEnd(20)} ${"pair".padEnd(30)} ${heads.map((head) => head.padStart(COLUMN_CHARS)).join(" ")}`,
        );
        headed = true;
      }
      const study = await rolloutStudy({
        setting,
        control: candidateNamed(control),
        other: candidateNamed(other),
        designs,
        runs,
        power: 0.8,
        level: 0.05,
        figure: "e2e.mean",
        hours: [24],
        threadsMax: availableParallelism(),
      });
      const before = study.truth.control.e2eMicros?.mean ?? NaN;
      const after = study.truth.other.e2eMicros?.mean ?? NaN;
      const cells = [ms(before), ms(after - before)];
      for (const { figures } of study.designs) {
        const { estimate, biasError } = figures["e2e.mean"];
        cells.push(`${ms(estimate)} +- ${ms(biasError)}`);
      }
      print(
        `${name.padEnd(20)} ${`${control} -> ${other}`.padEnd(30)} ${cells.map((cell) => cell.padStart(COLUMN_CHARS)).join(" ")}`,
      );
    }
  }
}

function ms(micros: number): string {
  return (micros / 1000).toFixed(Math.abs(micros) < 100_000 ? 1 : 0);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
