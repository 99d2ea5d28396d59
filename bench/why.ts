/**
 * Causes that were put into traffic on purpose, and what `gnomon why` names first: an index that takes each engine's
 * cache for its neighbour's, caches that are too small, a tenant that asks for most, an engine at half its speed, prefixes
 * that weigh a hundredth. Beside them nothing at all, and nothing but twice the load.
 *
 *     npx node bench/why.ts [--workload chat|agents] [--in-force llm-d|gnomon|...] [--seeds 10] [--first-seed 1] [--conversations 250]
 *         [--against gnomon] [--causes index,cache,tenant,engines,policy,none,load] [--by-hand] [--trace]
 *
 * The policy in force is held against what should be in force, or against --against.
 * Four simulated engines whose steps wander by a tenth, which the explanation does not know. --by-hand: one request of each
 * of three cases, with what its explanation rests on. --trace: 12,000 requests of Mooncake's conversations under BENCH_TRACES
 * (default ../shared/traces), by the command itself, with its CPU time.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { firstCause } from "#shadow/why/first-cause.ts";
import type { SlowAnswer, TimePart } from "#shadow/why/slow-answers.ts";
import type { WhyAnswer } from "#cli/why/why-text.ts";
import { cpuSecondsOf } from "./child-cpu.ts";
import { explained } from "./why/explained.ts";
import { ENGINE, INJECTED, injectedTrace, type InjectedCase, type WorkloadName } from "./why/injected-cause.ts";

const { values: flags } = parseArgs({
  options: {
    workload: { type: "string", default: "chat" },
    "in-force": { type: "string", default: "llm-d" },
    seeds: { type: "string", default: "10" },
    "first-seed": { type: "string", default: "1" },
    conversations: { type: "string", default: "250" },
    against: { type: "string" },
    causes: { type: "string", default: [...INJECTED, "none", "load"].join(",") },
    "by-hand": { type: "boolean", default: false },
    trace: { type: "boolean", default: false },
  },
});
/** What should be in force: of weights that are bad, those before. */
const againstOf = (cause: string): string => flags.against ?? (cause === "policy" ? "llm-d" : flags["in-force"]);
const conversations = Number(flags.conversations);
const caseOf = (cause: InjectedCase["cause"], seed: number): InjectedCase => ({
  cause,
  seed,
  conversations,
  workload: flags.workload as WorkloadName,
  inForce: flags["in-force"],
});

if (flags.trace) ofTrace();
else if (flags["by-hand"]) await byHand();
else await named();

async function named(): Promise<void> {
  const head = [
    "injected",
    "named first",
    "its part, %",
    "next cause, %",
    "unexplained, %",
    "most tokens lost to",
    "of possible, %",
  ];
  console.log(`| ${head.join(" | ")} |\n${"|---".repeat(head.length)}|`);
  for (const cause of flags.causes.split(",") as InjectedCase["cause"][]) {
    const firsts = new Map<string, number>();
    const losses = new Map<string, number>();
    const [own, next, unexplained, lost]: number[][] = [[], [], [], []];
    const first = Number(flags["first-seed"]);
    for (let seed = first; seed < first + Number(flags.seeds); seed++) {
      const { slow, tokens } = await explained(injectedTrace(caseOf(cause, seed)), againstOf(cause));
      count(firsts, firstCause(slow)?.part ?? "nothing");
      const [loss] = tokens.losses;
      count(losses, loss?.loss ?? "nothing");
      own!.push(shareOf(slow, cause));
      next!.push(Math.max(0, ...INJECTED.filter((one) => one !== cause).map((one) => shareOf(slow, one))));
      unexplained!.push(shareOf(slow, "unexplained"));
      lost!.push((loss?.tokens ?? 0) / tokens.possible);
    }
    const cells = [
      cause,
      counted(firsts),
      range(own!),
      range(next!),
      range(unexplained!),
      counted(losses),
      range(lost!),
    ];
    console.log(`| ${cells.join(" | ")} |`);
  }
}

function shareOf({ parts, micros }: SlowAnswer, part: string): number {
  return (parts.find((one) => one.part === part)?.micros ?? 0) / micros;
}

function count(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

function counted(counts: ReadonlyMap<string, number>): string {
  return [...counts]
    .sort((a, b) => b[1] - a[1])
    .map(([name, times]) => `${name} ${times}`)
    .join(", ");
}

/** The middle and the ends. */
function range(shares: readonly number[]): string {
  const sorted = shares.map((share) => 100 * share).sort((a, b) => a - b);
  if (sorted.every((share) => share === 0)) return "-";
  const [low, middle, high] = [0, sorted.length >> 1, sorted.length - 1].map((i) => sorted[i]!.toFixed(0));
  return `${middle} (${low} to ${high})`;
}

/** The slowest request of three cases; of a hot tenant's, the slowest one of the others. */
async function byHand(): Promise<void> {
  const { stepTime } = ENGINE;
  if (stepTime.kind === "coefficients") {
    const { baseMicros, perPrefillTokenMicros, perDecodeMicros } = stepTime;
    console.log(`a step: ${baseMicros} us, ${perPrefillTokenMicros} more a prompt token, ${perDecodeMicros} a decode`);
  }
  for (const cause of ["index", "tenant", "engines"] as const) {
    const items = injectedTrace(caseOf(cause, 1));
    const whole = await explained(items, againstOf(cause));
    const id = whole.ids[whole.slowest]!;
    const { slow, rows } = await explained(items, againstOf(cause), id);
    const row = rows.find(({ requestId }) => requestId === id)!;
    console.log(`\n${cause}: ${id} of ${row.tenant} at ${row.endpoint}, TTFT ${millis(slow.micros)} ms`);
    const lost = row.losses.map(({ loss, tokens }) => `${loss} ${tokens}`).join(", ");
    console.log(
      `  tokens: ${row.promptTokens} = ${row.promptTokens - row.possible} new + ${row.hit} hit + lost: ${lost || "none"}`,
    );
    console.log(`  expected ${row.expected} there; elsewhere: ${JSON.stringify(row.elsewhere ?? "nobody")}`);
    const parts = slow.parts.filter(({ micros }) => micros !== 0);
    console.log(
      `  ms: ${parts.map(({ part, micros }: { part: TimePart; micros: number }) => `${part} ${millis(micros)}`).join(", ")}`,
    );
    const { queueMicros, prefillAloneMicros, prefillMoreMicros } = slow.stages;
    console.log(
      `  on the way: queue ${millis(queueMicros)}, prefill ${millis(prefillAloneMicros)} alone and ${millis(prefillMoreMicros)} more`,
    );
    const ahead = slow.ahead.longest.map(
      (one) => `${whole.ids[one.index]} of ${one.tenant} ${Math.round(one.computedTokens)}`,
    );
    console.log(`  computed meanwhile: ${slow.ahead.tokens.toFixed(0)} tokens of others: ${ahead.join(", ")}`);
  }
}

function ofTrace(): void {
  const path = join(process.env["BENCH_TRACES"] ?? "../shared/traces", "mooncake/conversation_trace.jsonl");
  if (!existsSync(path)) {
    console.log(`no ${path}; set BENCH_TRACES`);
    return;
  }
  const folder = mkdtempSync(join(tmpdir(), "gnomon-why-"));
  try {
    const answer = join(folder, "answer.json");
    const words = ["--engine", "h100-llama-3.1-8b", "--endpoints", "8", "--limit", "12000", "--no-cache", "-o", answer];
    const cpu = cpuSecondsOf([process.execPath, "src/main.ts", "why", path, ...words], process.cwd());
    const { slow, tokens } = JSON.parse(readFileSync(answer, "utf8")) as WhyAnswer;
    const parts = slow.parts.filter(({ micros }) => micros !== 0);
    const shares = tokens.losses.map(({ loss, tokens: lost }) => `${loss} ${percent(lost / tokens.possible)}`);
    console.log(`| requests | simulations | CPU s | mean TTFT ms | parts, ms | possible tokens | hit | lost |`);
    console.log("|---|---|---|---|---|---|---|---|");
    console.log(
      `| ${tokens.requests} | ${slow.worlds} | ${cpu.toFixed(1)} | ${millis(slow.micros)} | ` +
        `${parts.map(({ part, micros }) => `${part} ${millis(micros)}`).join(", ")} | ${tokens.possible} | ` +
        `${percent(tokens.hit / tokens.possible)} | ${shares.join(", ")} |`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function millis(micros: number): string {
  return (micros / MICROS_PER_MILLI).toFixed(1);
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
