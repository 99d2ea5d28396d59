/**
 * Which policy is the default: candidates on the choosing half of many cases, by the rule of bench/pages/default-choice.md,
 * and the one in force on the held-out half beside the best of all others in each column.
 *
 *     BENCH_TRACES=FOLDER npx node bench/default-choice.ts [--half choosing|held-out] [--requests 1000] [--seeds 0,1,2]
 *         [--cases "n;m"] [--policies "a;b"] [--default gnomon] [--results FILE] [--shard 1/2] [--tables]
 *
 * FOLDER holds mooncake/conversation_trace.jsonl, azure/AzureLLMInferenceTrace_code.csv, weka/*.json, weka-more/*.json and
 * vllm-runs/RTX4090_Llama-3.1-8B/kernels. Simulated H100 engines with Llama 3.1 8B in virtual time, others where a case has
 * them. Every seed has traffic of its own. Results are added to FILE, a line each, under a digest of the case, the policy
 * and, for policies of ours, their code; what is there is not run again, so that a run can be stopped, or shared among
 * processes by --shard. --tables prints what FILE has and runs nothing.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { CHOICE_CASES, HALVES, type HalfName } from "./default-choice/case.ts";
import { type Cell, digestOf, runCell } from "./default-choice/cell.ts";
import { choiceWorkload } from "./default-choice/choice-workload.ts";
import { CANDIDATES, FIXED, INCUMBENT, OTHERS, policyNamed } from "./default-choice/policies.ts";
import { isBetter, type Score, scoreOf, standings } from "./default-choice/score.ts";
import { caseTable, scoreTable } from "./default-choice/tables.ts";

const { values: flags } = parseArgs({
  options: {
    half: { type: "string", default: "choosing" },
    requests: { type: "string", default: "1000" },
    seeds: { type: "string", default: "0,1,2" },
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
const requestsMax = Number(flags.requests);
const asked = [
  ...new Set(flags.policies?.split(";") ?? [...(half === "choosing" ? CANDIDATES : [flags.default]), ...FIXED]),
];
const cases = CHOICE_CASES.filter(({ name }) => flags.cases === undefined || flags.cases.split(";").includes(name));
if (!flags.tables) await run(half);
const cells = known().filter((cell) => cell.half === half && seeds.includes(cell.seed) && isCurrent(cell));
judge(half);
console.log(caseTable(cells, flags.default, OTHERS));

function known(): Cell[] {
  if (!existsSync(flags.results)) return [];
  const lines = readFileSync(flags.results, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Cell);
}

function isCurrent({ name, policy, digest }: Cell): boolean {
  const one = cases.find((each) => each.name === name);
  const wanted = asked.includes(policy) || FIXED.includes(policy) || policy === flags.default;
  return one !== undefined && wanted && digest === digestOf(one, requestsMax, policyNamed(policy));
}

async function run(part: HalfName): Promise<void> {
  const key = (cell: Pick<Cell, "name" | "half" | "seed" | "policy">): string =>
    [cell.name, cell.half, cell.seed, cell.policy].join("|");
  const done = new Set(
    known()
      .filter((cell) => isCurrent(cell))
      .map(key),
  );
  const [shard = 1, shards = 1] = flags.shard.split("/").map(Number);
  const jobs = cases.flatMap((one) => seeds.map((seed) => ({ one, seed })));
  for (const { one, seed } of jobs.filter((_, i) => i % shards === shard - 1)) {
    const left = asked.filter((policy) => !done.has(key({ name: one.name, half: part, seed, policy })));
    if (left.length === 0) continue;
    const requests = await choiceWorkload(one, part, seed, requestsMax, traces);
    const before = performance.now();
    for (const policy of left) {
      const cell = runCell(one, part, seed, policyNamed(policy), requestsMax, requests, traces);
      appendFileSync(flags.results, `${JSON.stringify(cell)}\n`);
    }
    const seconds = ((performance.now() - before) / 1000).toFixed(1);
    process.stderr.write(
      `${one.name}, seed ${seed}: ${requests.length} requests, ${left.length} policies, ${seconds} s\n`,
    );
  }
}

/** By the rule; while choosing also whether it holds on each seed alone. */
function judge(part: HalfName): void {
  const scoreOn = (some: readonly Cell[], name: string): Score => scoreOf(standings(some, name, FIXED));
  const isOfOurs = (name: string): boolean => part === "choosing" || name === flags.default || name === INCUMBENT;
  const names = asked.filter((name) => isOfOurs(name) && cells.some(({ policy }) => policy === name));
  const ranked = names.map((name) => [name, scoreOn(cells, name)] as const);
  console.log(`${scoreTable(ranked.toSorted(([, a], [, b]) => a.worst - b.worst))}\n`);
  if (part === "held-out") return;
  const better = ranked.filter(([name, score]) => name !== INCUMBENT && isBetter(score, scoreOn(cells, INCUMBENT)));
  for (const [name] of better) {
    const on = seeds.filter((seed) => {
      const own = cells.filter((cell) => cell.seed === seed);
      return isBetter(scoreOn(own, name), scoreOn(own, INCUMBENT));
    });
    console.log(`${name} is better than ${INCUMBENT} over all seeds, and on ${on.length} of ${seeds.length} alone`);
  }
  console.log("");
}
