/**
 * Which policy is the default: candidates on the choosing half of many cases, by the rule in bench/README.md, and the one
 * in force on the held-out half beside the best of all others in each column.
 *
 *     BENCH_TRACES=FOLDER npx node bench/default-choice.ts [--half choosing|held-out] [--requests 700] [--seeds 0,1]
 *         [--cases "n;m"] [--policies "a;b"] [--default gnomon] [--results FILE] [--shard 1/2] [--tables]
 *
 * FOLDER holds mooncake/conversation_trace.jsonl, azure/AzureLLMInferenceTrace_code.csv, weka/*.json and weka-more/*.json.
 * Simulated H100 engines with Llama 3.1 8B in virtual time, others where a case has them. Every seed has traffic of its
 * own. Results are added to FILE, a line each; what is there is not run again, so that a run can be stopped, or shared
 * among processes by --shard. --tables prints what FILE has and runs nothing.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { randomFor } from "#core/base/random.ts";
import { CHOICE_CASES, HALVES, type HalfName } from "./default-choice/case.ts";
import { type Cell, runCell } from "./default-choice/cell.ts";
import { choiceWorkload } from "./default-choice/choice-workload.ts";
import { CANDIDATES, INCUMBENT, OTHERS } from "./default-choice/policies.ts";
import { scoreOf, scoresByCase, standings } from "./default-choice/score.ts";
import { heldOutTable, scoreTable } from "./default-choice/tables.ts";

const { values: flags } = parseArgs({
  options: {
    half: { type: "string", default: "choosing" },
    requests: { type: "string", default: "700" },
    seeds: { type: "string", default: "0,1" },
    cases: { type: "string" },
    policies: { type: "string" },
    default: { type: "string", default: "gnomon" },
    results: { type: "string", default: "default-choice.jsonl" },
    shard: { type: "string", default: "1/1" },
    tables: { type: "boolean", default: false },
  },
});
const half = HALVES.find((name) => name === flags.half);
if (half === undefined) {
  process.stderr.write(`default-choice: --half: expected one of ${HALVES.join(", ")}, got ${flags.half}\n`);
  process.exit(2);
}
const traces = process.env["BENCH_TRACES"] ?? "../shared/traces";
const seeds = flags.seeds.split(",").map(Number);
const asked = flags.policies?.split(";") ?? [...(half === "choosing" ? CANDIDATES : [flags.default]), ...OTHERS];
const cases = CHOICE_CASES.filter(({ name }) => flags.cases === undefined || flags.cases.split(";").includes(name));
if (!flags.tables) await run(half);
const cells = known().filter((cell) => cell.half === half && seeds.includes(cell.seed));
if (half === "choosing") choose();
else console.log(heldOutTable(cells, flags.default, OTHERS));

function known(): Cell[] {
  if (!existsSync(flags.results)) return [];
  const lines = readFileSync(flags.results, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Cell);
}

async function run(part: HalfName): Promise<void> {
  const key = (cell: Pick<Cell, "name" | "half" | "seed" | "policy">): string =>
    [cell.name, cell.half, cell.seed, cell.policy].join("|");
  const done = new Set(known().map(key));
  const [shard = 1, shards = 1] = flags.shard.split("/").map(Number);
  const jobs = cases.flatMap((one) => seeds.map((seed) => ({ one, seed })));
  for (const { one, seed } of jobs.filter((_, i) => i % shards === shard - 1)) {
    const left = asked.filter((policy) => !done.has(key({ name: one.name, half: part, seed, policy })));
    if (left.length === 0) continue;
    const requests = await choiceWorkload(one, part, seed, Number(flags.requests), traces);
    const before = performance.now();
    for (const policy of left) {
      const cell = runCell(one, part, seed, policy, requests);
      appendFileSync(flags.results, `${JSON.stringify(cell)}\n`);
    }
    const seconds = ((performance.now() - before) / 1000).toFixed(1);
    process.stderr.write(
      `${one.name}, seed ${seed}: ${requests.length} requests, ${left.length} policies, ${seconds} s\n`,
    );
  }
}

/** By the rule; and whether the choice holds on each seed alone. */
function choose(): void {
  const ranking = (some: readonly Cell[]): readonly (readonly [string, number])[] =>
    CANDIDATES.filter((name) => some.some(({ policy }) => policy === name))
      .map((name) => [name, scoreOf(standings(some, name, OTHERS))] as const)
      .toSorted(([, a], [, b]) => a - b);
  const all = ranking(cells);
  console.log(scoreTable(cells, all, OTHERS, seeds));
  const [winner] = all[0] ?? [];
  if (winner === undefined) return;
  for (const seed of seeds) {
    const own = ranking(cells.filter((cell) => cell.seed === seed));
    const place = own.findIndex(([name]) => name === winner) + 1;
    console.log(`seed ${seed} alone: ${winner} is ${place} of ${own.length}, the best is ${own[0]![0]}`);
  }
  const [low, high] = difference(winner);
  console.log(`${winner} less ${INCUMBENT}, 90 % over cases drawn anew: ${low.toFixed(4)} to ${high.toFixed(4)}`);
}

/** Of two candidates' scores, case by case, by bootstrap over the cases. */
function difference(winner: string): readonly [number, number] {
  const [ours, theirs] = [winner, INCUMBENT].map((name) => scoresByCase(standings(cells, name, OTHERS)));
  const differences = [...ours!].map(([name, score]) => score - theirs!.get(name)!);
  const random = randomFor(1, 2);
  const means = Array.from({ length: 2_000 }, () => {
    const drawn = differences.map(() => differences[random.below(differences.length)]!);
    return drawn.reduce((sum, one) => sum + one, 0) / drawn.length;
  }).sort((a, b) => a - b);
  return [means[Math.floor(0.05 * means.length)]!, means[Math.floor(0.95 * means.length)]!];
}
