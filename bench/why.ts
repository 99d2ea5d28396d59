/**
 * Causes that were put into traffic on purpose, and what `gnomon why` names first: an index that takes each engine's
 * cache for its neighbour's, caches that are too small, a tenant that asks for most, an engine at half its speed or slow at prompts alone, prefixes
 * that weigh a hundredth. Beside them nothing at all, and nothing but twice the load.
 *
 *     npx node bench/why.ts [--workload chat|agents|conversations|sessions] [--in-force llm-d|gnomon|...] [--seeds 10] [--first-seed 1] [--conversations 250]
 *         [--against gnomon] [--causes index,cache,tenant,engines,prefill,policy,none,load] [--trace]
 *
 * The policy in force is held against what should be in force, or against --against.
 * Four simulated engines whose steps wander by a tenth, which the explanation does not know. --trace: 12,000 requests of Mooncake's conversations under BENCH_TRACES
 * (default ../shared/traces), by the command itself, with its CPU time.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import { namedCauses } from "#shadow/why/named-causes.ts";
import type { SlowAnswer } from "#shadow/why/slow-answers.ts";
import type { WhyAnswer } from "#shadow/why/why-answer.ts";
import type { TraceItem } from "#trace/codec/record.ts";
import { cpuSecondsOf } from "./child-cpu.ts";
import { explained } from "./why/explained.ts";
import { counted, range } from "./why/shown.ts";
import { INJECTED, injectedTrace, partOf, type InjectedCase, type WorkloadName } from "./why/injected-cause.ts";
import { RECORDED_NAMES, recordedTraffic } from "./why/recorded-traffic.ts";

const { values: flags } = parseArgs({
  options: {
    workload: { type: "string", default: "chat" },
    "in-force": { type: "string", default: "llm-d" },
    seeds: { type: "string", default: "10" },
    "first-seed": { type: "string", default: "1" },
    conversations: { type: "string", default: "250" },
    against: { type: "string" },
    causes: { type: "string", default: [...INJECTED, "none", "load"].join(",") },
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

const recorded = RECORDED_NAMES.find((name) => name === flags.workload);
const traces = process.env["BENCH_TRACES"] ?? "../shared/traces";

if (flags.trace) ofTrace();
else await named();

async function named(): Promise<void> {
  const head = [
    "injected",
    "named first",
    ...(flags.against === undefined ? [] : ["named at all"]),
    "its part, %",
    "unexplained, %",
    "most tokens lost to",
  ];
  console.log(`| ${head.join(" | ")} |\n${"|---".repeat(head.length)}|`);
  for (const cause of flags.causes.split(",") as InjectedCase["cause"][]) {
    const [firsts, losses]: string[][] = [[], []];
    let named = 0;
    const [own, unexplained]: number[][] = [[], []];
    const first = Number(flags["first-seed"]);
    for (let seed = first; seed < first + Number(flags.seeds); seed++) {
      const { slow, tokens } = await explained(await traceOf(cause, seed), againstOf(cause));
      const all = namedCauses(slow).map(({ part }) => part as string);
      firsts!.push(all[0] ?? "nothing");
      if (all.includes(partOf(cause))) named++;
      const [loss] = tokens.losses;
      losses!.push(loss?.loss ?? "nothing");
      own!.push(shareOf(slow, partOf(cause)));
      unexplained!.push(shareOf(slow, "unexplained"));
    }
    const cells = [
      cause,
      counted(firsts!),
      ...(flags.against === undefined ? [] : [`${named} of ${firsts!.length}`]),
      range(own!),
      range(unexplained!),
      counted(losses!),
    ];
    console.log(`| ${cells.join(" | ")} |`);
  }
}

async function traceOf(cause: InjectedCase["cause"], seed: number): Promise<TraceItem[]> {
  const asked = caseOf(cause, seed);
  if (recorded === undefined) return injectedTrace(asked);
  return injectedTrace(asked, await recordedTraffic({ name: recorded, cause, seed, traces }));
}

function shareOf({ parts, micros }: SlowAnswer, part: string): number {
  return (parts.find((one) => one.part === part)?.micros ?? 0) / micros;
}

function ofTrace(): void {
  const path = join(traces, "mooncake/conversation_trace.jsonl");
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
