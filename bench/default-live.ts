/**
 * The default and its rivals on held-out cases, over sockets: each policy in a gateway of its own before emulated engines
 * in processes, the same requests, and beside each figure what the simulator predicts of that cell.
 *
 *     BENCH_TRACES=FOLDER npx node bench/default-live.ts [--cases "n;m"] [--policies "a;b"] [--seeds 0,1,2]
 *         [--requests N] [--seconds 210] [--results default-live.jsonl] [--tables]
 *
 * FOLDER is that of bench/default-choice.ts, with azure/AzureLLMInferenceTrace_conv.csv of Azure's public dataset where the
 * case of chats is asked for. A seed has traffic of its own; policies take turns on it, in another order for each seed.
 * Engines run several times as fast as an H100, and so do arrivals; figures are in the engines' time. The simulator has
 * engines and arrivals of that speed too, since a gateway's windows are on the wall clock. Results are added to a file, a
 * line each, and what is there is not run again: no run is begun after --seconds, so the same command goes on where the
 * last one stopped. --requests makes every case as long. --tables prints what the file has and runs nothing.
 */
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { LiveCell } from "./default-live/live-cell.ts";
import { LIVE_CASES, LIVE_POLICIES, type LiveCase } from "./default-live/live-case.ts";
import { LiveFleet } from "./default-live/live-fleet.ts";
import { liveWorkload, WARM_UP_REQUESTS, writeWorkload } from "./default-live/live-workload.ts";
import { measuredCell } from "./default-live/measured-cell.ts";
import { predictedCell } from "./default-live/predicted-cell.ts";
import { liveTables } from "./default-live/live-tables.ts";
import { enginePort } from "./engine-group.ts";

const { values: flags } = parseArgs({
  options: {
    cases: { type: "string" },
    policies: { type: "string" },
    seeds: { type: "string", default: "0,1,2" },
    requests: { type: "string" },
    seconds: { type: "string", default: "210" },
    results: { type: "string", default: "default-live.jsonl" },
    tables: { type: "boolean", default: false },
  },
});
const traces = process.env["BENCH_TRACES"] ?? "../shared/traces";
const seeds = flags.seeds.split(",").map(Number);
const policies = flags.policies?.split(";") ?? LIVE_POLICIES;
const asked = flags.cases?.split(";");
const cases = LIVE_CASES.filter(({ name }) => asked === undefined || asked.includes(name)).map((one) =>
  flags.requests === undefined ? one : { ...one, requests: Number(flags.requests) },
);
const since = performance.now();
const secondsMax = Number(flags.seconds);
if (!flags.tables) await run();
console.log(liveTables(known().filter(isAsked)));

function known(): LiveCell[] {
  if (!existsSync(flags.results)) return [];
  const lines = readFileSync(flags.results, "utf8").split("\n");
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as LiveCell);
}

function isAsked({ name, seed, requestsMax }: LiveCell): boolean {
  return seeds.includes(seed) && cases.some((one) => one.name === name && one.requests === requestsMax);
}

async function run(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-default-live-"));
  try {
    for (const seed of seeds) {
      for (const one of cases) {
        const done = known().filter((cell) => isAsked(cell) && cell.name === one.name && cell.seed === seed);
        const left = inTurn(policies, seed).filter((policy) => !done.some((cell) => cell.policy === policy));
        if (left.length > 0 && isTimeLeft()) await runCells(one, seed, left, folder);
      }
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  if (!isTimeLeft()) process.stderr.write(`default-live: ${flags.seconds} s are over; the same command goes on\n`);
}

async function runCells(one: LiveCase, seed: number, left: readonly string[], folder: string): Promise<void> {
  const requests = await liveWorkload(one, seed, traces);
  const workload = join(folder, "workload.jsonl");
  writeWorkload(workload, requests);
  const port = enginePort();
  const fleet = await LiveFleet.start(one, port + 1, folder);
  try {
    const measuring = { fleet, workload, port, folder };
    await measuredCell(one, "round-robin", { ...measuring, promptSeed: 0, requestsMax: WARM_UP_REQUESTS });
    for (const [i, policy] of left.entries()) {
      if (!isTimeLeft()) break;
      const begun = performance.now();
      const { figures, machine } = await measuredCell(one, policy, { ...measuring, promptSeed: i + 1 });
      const predicted = predictedCell(one, seed, policy, requests);
      const { name, timeScale } = one;
      const counted = requests.length - WARM_UP_REQUESTS;
      const cell: LiveCell = {
        name,
        seed,
        policy,
        requestsMax: one.requests,
        requests: counted,
        timeScale,
        predicted,
        measured: figures,
        machine,
      };
      appendFileSync(flags.results, `${JSON.stringify(cell)}\n`);
      const seconds = ((performance.now() - begun) / 1000).toFixed(1);
      process.stderr.write(`${name}, seed ${seed}, ${policy}: ${counted} requests, ${seconds} s\n`);
    }
  } finally {
    await fleet.stop();
  }
}

function isTimeLeft(): boolean {
  return performance.now() - since < 1_000 * secondsMax;
}

/** Another one is the first on each seed. */
function inTurn(all: readonly string[], seed: number): string[] {
  const first = seed % all.length;
  return [...all.slice(first), ...all.slice(0, first)];
}
