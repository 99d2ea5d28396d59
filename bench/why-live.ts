/**
 * Causes put on purpose before a gateway that serves over sockets, recorder on, and what `gnomon why` names first of what it
 * recorded: the gateway follows each engine's KV events at its neighbour's port, caches hold the longest request and no more,
 * one tenant sends most of what is computed, one engine runs at half its speed or computes prompts at a third of it,
 * prefixes weigh a hundredth; and nothing.
 *
 *     BENCH_TRACES=FOLDER npx node bench/why-live.ts [--workload chat|conversations|sessions] [--seeds 10] [--first-seed 1]
 *         [--causes index,cache,tenant,engines,prefill,policy,none] [--time-scale 0.3] [--port 21300] [--folder DIR]
 *         [--at-once 1] [--record-only] [--again] [--by-hand]
 *
 * chat is the project's own generator; conversations and sessions are what others recorded (Mooncake's, WEKA's, the hot tenant's
 * Azure's), under BENCH_TRACES (default ../shared/traces). A run takes 15 s at the real speed, --at-once of them side by
 * side: many that are slow keep up better than few that are fast. Its trace stays in DIR, and what is there is not run again; --again asks `why` anew about traces that are there. --by-hand: of the first seed's runs,
 * what the records say of the slowest request, and `why --request` of it.
 *
 * `why` is asked on an engine that `calibrate` fitted to another run in which nothing is wrong (seed 0), and once more as
 * anybody would ask, without --engine. What costs less than a twentieth of the mean TTFT of the same seed without a cause is
 * no fault and not counted. *fitted anew*: how often `why` did not keep the engine, that of --engine and its own. *late*: runs in
 * which ends of engines' steps came too late, by 15 ms of the workload's own time (the 99th percentile).
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { WhyAnswer } from "#shadow/why/why-answer.ts";
import { namedCauses } from "#shadow/why/named-causes.ts";
import { Program } from "./closed-loop/program.ts";
import {
  LIVE_CAUSES,
  type LiveCaseAsked,
  liveCause,
  type LiveCause,
  type LiveResult,
  type LiveWorkload,
  nameOf,
} from "./why/live-cause.ts";
import { slowestByHand } from "./why/by-hand.ts";
import { partOf } from "./why/injected-cause.ts";
import { counted, range } from "./why/shown.ts";

const { values: flags } = parseArgs({
  options: {
    workload: { type: "string", default: "chat" },
    seeds: { type: "string", default: "10" },
    "first-seed": { type: "string", default: "1" },
    causes: { type: "string", default: LIVE_CAUSES.join(",") },
    "time-scale": { type: "string", default: "0.3" },
    port: { type: "string", default: "21300" },
    folder: { type: "string", default: join(tmpdir(), "gnomon-why-live") },
    again: { type: "boolean", default: false },
    "at-once": { type: "string", default: "1" },
    "record-only": { type: "boolean", default: false },
    "by-hand": { type: "boolean", default: false },
  },
});
const workload = flags.workload as LiveWorkload;
const setting = {
  folder: flags.folder,
  port: Number(flags.port),
  timeScale: Number(flags["time-scale"]),
  traces: process.env["BENCH_TRACES"] ?? "../shared/traces",
};
const firstSeed = Number(flags["first-seed"]);
const seeds = Array.from({ length: Number(flags.seeds) }, (_, i) => firstSeed + i);
const causes = flags.causes.split(",") as LiveCause[];
const HOWS = ["fitted", "plain"] as const;
type How = (typeof HOWS)[number];
/** Of the workload's own time: two of its steps and a half. */
const LATE_MILLIS_MAX = 15;
/** Mean TTFT above that of the same seed without a cause, from which on what was injected counts as a fault at all. */
const COST_MIN = 0.05;
const PORTS_APART = 10;
/** Runs until one kept up, for the engine that is fitted. */
const REFERENCES_MAX = 1;

mkdirSync(flags.folder, { recursive: true });
const fitted = flags["record-only"] ? "" : await healthyEngine();
const found: Found[] = [];
if (flags["by-hand"]) for (const cause of causes) await byHand({ workload, cause, seed: firstSeed });
else {
  const asked = seeds.flatMap((seed) => causes.map((cause): LiveCaseAsked => ({ workload, cause, seed })));
  // Each at ports of its own.
  let next = 0;
  const records = async (number: number): Promise<void> => {
    for (let one = asked[next++]; one !== undefined; one = asked[next++])
      await recorded(one, setting.port + PORTS_APART * number);
  };
  await Promise.all(Array.from({ length: Number(flags["at-once"]) }, (_, number) => records(number)));
  if (!flags["record-only"]) {
    for (const one of asked) found.push(await foundOf(one));
    show();
  }
}

interface Found {
  readonly cause: LiveCause;
  /** Mean TTFT of all requests over that of the same seed without a cause, less 1; NaN where nobody ran that. */
  readonly cost: number;
  readonly answers: Readonly<Record<How, WhyAnswer>>;
  readonly isLate: boolean;
}

/** What `calibrate` makes of a run in which nothing is wrong. */
async function healthyEngine(): Promise<string> {
  const file = join(flags.folder, `${workload}-healthy.yaml`);
  const { folder } = await recorded({ workload, cause: "none", seed: 0 });
  if (!existsSync(file))
    await Program.run({ command: "calibrate", operands: [join(folder, "trace")], flags: { output: file } });
  return file;
}

async function recorded(
  asked: LiveCaseAsked,
  port = setting.port,
): Promise<{ readonly folder: string; readonly result: LiveResult }> {
  const folder = join(flags.folder, nameOf(asked));
  const file = join(folder, "result.json");
  // What engines are fitted to is to be of a machine that kept up.
  for (let left = asked.seed === 0 ? REFERENCES_MAX : 1; left > 0 && !existsSync(file); left--) {
    const result = await liveCause(asked, { ...setting, port });
    if (left === 1 || !isLate(result)) writeFileSync(file, JSON.stringify(result));
    process.stderr.write(`${nameOf(asked)}: ${JSON.stringify(result)}\n`);
  }
  return { folder, result: JSON.parse(readFileSync(file, "utf8")) as LiveResult };
}

/** Then engines' times are those of a machine that did not keep up; requests that were sent late are recorded as they came. */
function isLate({ engineLateMillis, timeScale }: LiveResult): boolean {
  return timeScale * engineLateMillis > LATE_MILLIS_MAX;
}

async function foundOf(asked: LiveCaseAsked): Promise<Found> {
  const { folder, result } = await recorded(asked);
  const answers = await Promise.all(HOWS.map(async (how) => [how, await why(folder, how)] as const));
  process.stderr.write(`${nameOf(asked)}: ${answers.map(([how, answer]) => `${how} ${firstOf(answer)}`).join(", ")}\n`);
  const cost = result.ttftMillis / controlMillis(asked) - 1;
  return { cause: asked.cause, cost, answers: Object.fromEntries(answers) as Found["answers"], isLate: isLate(result) };
}

function controlMillis(asked: LiveCaseAsked): number {
  const file = join(flags.folder, nameOf({ ...asked, cause: "none" }), "result.json");
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as LiveResult).ttftMillis : NaN;
}

async function why(folder: string, how: How): Promise<WhyAnswer> {
  const file = join(folder, `why-${how}.json`);
  if (!existsSync(file) || flags.again) {
    const engine = how === "fitted" ? { engine: fitted } : {};
    const operands = [join(folder, "trace")];
    await Program.run({ command: "why", operands, flags: { output: file, against: "llm-d", ...engine } });
  }
  return JSON.parse(readFileSync(file, "utf8")) as WhyAnswer;
}

/** The slowest request of a run, of others than the hot tenant: its records, and what `why` makes of it. */
async function byHand(asked: LiveCaseAsked): Promise<void> {
  const { folder } = await recorded(asked);
  const trace = join(folder, "trace");
  const hot = (await why(folder, "fitted")).slow.hotTenant?.tenant ?? "";
  const read = await slowestByHand(trace, hot, asked.cause === "index");
  const file = join(folder, "by-hand.json");
  const words = { output: file, against: "llm-d", engine: fitted, request: read.id };
  await Program.run({ command: "why", operands: [trace], flags: words });
  const { slow, request } = JSON.parse(readFileSync(file, "utf8")) as WhyAnswer;
  const { believed, others, promptTokens, cachedTokens, ttftMillis, endpoint } = read;
  const computed = others.reduce((sum, one) => sum + one.computed, 0);
  const lost = request!.losses.map(({ loss, tokens }) => `${loss} ${tokens}`).join(", ") || "none";
  const parts = slow.parts.filter(({ micros }) => micros !== 0);
  console.log(`\n${asked.cause}: a request at ${endpoint}, TTFT ${ttftMillis.toFixed(1)} ms`);
  console.log(`  records: ${promptTokens} tokens, ${cachedTokens} cached; believed ${JSON.stringify(believed)}`);
  console.log(
    `  records: meanwhile there ${others.length} others, ${computed} tokens of them computed${hotOf(others, hot)}`,
  );
  console.log(`  why: hit ${request!.hit}, lost: ${lost}; elsewhere ${JSON.stringify(request!.elsewhere ?? "nobody")}`);
  console.log(`  why, ms: ${parts.map(({ part, micros }) => `${part} ${(micros / 1_000).toFixed(1)}`).join(", ")}`);
}

function hotOf(others: readonly { readonly tenant: string; readonly computed: number }[], hot: string): string {
  const own = others.filter(({ tenant }) => tenant === hot).reduce((sum, { computed }) => sum + computed, 0);
  return own === 0 ? "" : `, ${own} of the hot tenant's`;
}

function firstOf({ slow }: WhyAnswer): string {
  return namedCauses(slow)[0]?.part ?? "nothing";
}

function show(): void {
  const head = [
    "injected",
    "costs, %",
    "counted",
    "named first",
    "without --engine",
    "its part, %",
    "unexplained, %",
    "fitted anew",
    "most tokens lost to",
    "late",
  ];
  console.log(`| ${head.join(" | ")} |\n${"|---".repeat(head.length)}|`);
  for (const cause of causes) {
    const all = found.filter((one) => one.cause === cause);
    const own = all.filter(({ cost }) => cause === "none" || !(cost < COST_MIN));
    const fit = own.map(({ answers }) => answers.fitted);
    const part = (answer: WhyAnswer, name: string) =>
      (answer.slow.parts.find((one) => one.part === name)?.micros ?? 0) / answer.slow.micros;
    const cells = [
      cause,
      range(all.map(({ cost }) => cost)),
      `${own.length} of ${all.length}`,
      counted(fit.map(firstOf)),
      counted(own.map(({ answers }) => firstOf(answers.plain))),
      range(fit.map((answer) => part(answer, partOf(cause)))),
      range(fit.map((answer) => part(answer, "unexplained"))),
      HOWS.map((how) => own.filter(({ answers }) => answers[how].slow.refit !== undefined).length).join(" and "),
      counted(fit.map(({ tokens }) => tokens.losses[0]?.loss ?? "nothing")),
      `${own.filter((one) => one.isLate).length} of ${own.length}`,
    ];
    console.log(`| ${cells.join(" | ")} |`);
  }
}
