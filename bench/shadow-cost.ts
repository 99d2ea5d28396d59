/**
 * What the shadow costs the gateway beside it: rounds with the shadow and without, under the same load, in one run.
 *
 *     npx node bench/shadow-cost.ts [--blocks 4] [--seconds 20] [--rate 3] [--share 0.1] [--set SECTION.KEY=JSON ...]
 *
 * A block is three rounds in changing order: off, on, and off once more. Every round begins with a new gateway, a new
 * emulated fleet and a warm-up, and sends the same conversations at the same times. "on" has three candidate profiles
 * evaluated every 3 s, each time after a fit of the engine model, so that it works as much as its share of a core lets it.
 * Differences are paired within a block; off against off is the noise that they are to be held against.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { setTimeout as sleep } from "node:timers/promises";
import type { ShadowStatus } from "#live/status/shadow-status.ts";
import { endAll, kept, message } from "./children.ts";
import { median } from "./median.ts";
import type { GatewayMark } from "./shadow-gateway.ts";

const WARM_UP_SECONDS = 20;
/** More than any round sends. */
const REQUESTS_MAX = 20_000;
const ORDERS = [
  ["off", "on", "off2"],
  ["on", "off2", "off"],
  ["off2", "off", "on"],
] as const;
type Arm = (typeof ORDERS)[number][number];

const FIGURES = [
  "requests",
  "decision p50 us",
  "decision p99 us",
  "loop delay p50 ms",
  "loop delay p99 ms",
  "TTFT p50 ms",
  "TTFT p99 ms",
  "E2E p50 ms",
  "E2E p99 ms",
  "own thread CPU ms/s",
  "process CPU ms/s",
] as const;
type Figure = (typeof FIGURES)[number];
type Round = Readonly<Record<Figure, number>>;

const { values } = parseArgs({
  options: {
    blocks: { type: "string", default: "4" },
    seconds: { type: "string", default: "20" },
    rate: { type: "string", default: "3" },
    share: { type: "string", default: "0.1" },
    set: { type: "string", multiple: true, default: [] },
  },
});
const [blocks, seconds] = [Number(values.blocks), Number(values.seconds)];
const scratch = mkdtempSync(join(tmpdir(), "gnomon-shadow-cost-"));

const SHADOW = [
  "shadow.enabled=true",
  "shadow.intervalMillis=3000",
  "shadow.windowRequests=600",
  "shadow.calibrateRequestsMax=600",
  `shadow.cpuShareMax=${values.share}`,
  'shadow.profiles=["round-robin","llm-d","lmetric"]',
];

const SPEC = `
conversations: 10000
arrivals: { process: poisson, ratePerSecond: ${values.rate} }
blockTokens: 16
groups:
  - name: support
    prefixes: 12
    zipfExponent: 0.6
    prefixTokens: { distribution: uniform, min: 300, max: 900 }
    userTokens: { distribution: lognormal, median: 200, sigma: 1.0, max: 3000 }
    outputTokens: { distribution: uniform, min: 10, max: 200 }
    turns: { distribution: geometric, mean: 3, max: 6 }
    thinkSeconds: 0.5
`;

try {
  await main();
} finally {
  endAll();
  rmSync(scratch, { recursive: true, force: true });
}

async function main(): Promise<void> {
  writeFileSync(join(scratch, "spec.yaml"), SPEC);
  const rounds: Record<Arm, Round[]> = { off: [], on: [], off2: [] };
  console.log(["round", ...FIGURES, "load"].join(" | "));
  for (let block = 0; block < blocks; block++) {
    for (const arm of ORDERS[block % ORDERS.length]!) {
      const { round, shadow } = await measured(arm, block);
      rounds[arm].push(round);
      const cells = FIGURES.map((name) => shown(round[name]));
      console.log([`${block} ${arm}`, ...cells, loadavg()[0]!.toFixed(1)].join(" | "));
      if (shadow !== "") console.log(`  ${shadow}`);
    }
  }
  report(rounds);
}

/** Medians, and the paired differences with their least and largest. */
function report({ off, on, off2 }: Readonly<Record<Arm, readonly Round[]>>): void {
  console.log(`\n${blocks} blocks of ${seconds} s a round, ${cpus().length} cores; median [least, largest]`);
  console.log(["".padEnd(32), "off", "on - off", "off again - off"].map((text) => text.padEnd(30)).join(""));
  for (const name of FIGURES) {
    const row = [
      shown(median(off.map((round) => round[name]))),
      spread(on.map((round, i) => round[name] - off[i]![name])),
      spread(off2.map((round, i) => round[name] - off[i]![name])),
    ];
    console.log(name.padEnd(32) + row.map((text) => text.padEnd(30)).join(""));
  }
}

function spread(differences: readonly number[]): string {
  const signed = (value: number): string => (value >= 0 ? "+" : "") + shown(value);
  return `${signed(median(differences))} [${signed(Math.min(...differences))}, ${signed(Math.max(...differences))}]`;
}

async function measured(arm: Arm, block: number): Promise<{ readonly round: Round; readonly shadow: string }> {
  const settings = arm === "on" ? [...SHADOW, ...values.set] : values.set;
  const gateway = started(join(import.meta.dirname, "shadow-gateway.ts"), settings);
  const { url, adminUrl } = (await message(gateway)) as { url: string; adminUrl: string };
  const log = join(scratch, "requests.jsonl");
  const flags = {
    "--url": url,
    "--api": "chat",
    "--spec": join(scratch, "spec.yaml"),
    "--seed": String(block),
    "--limit": String(REQUESTS_MAX),
    "--duration": String(WARM_UP_SECONDS + seconds + 2),
    "--requests-out": log,
  };
  const drive = started(join(import.meta.dirname, "../src/main.ts"), ["drive", ...Object.entries(flags).flat()]);
  const ended = once(drive, "exit");
  await sleep(WARM_UP_SECONDS * 1000);
  await mark(gateway);
  await sleep(seconds * 1000);
  const taken = await mark(gateway);
  const shadow = arm === "on" ? await shadowLine(adminUrl) : "";
  const [code] = (await ended) as [number | null];
  if (code !== 0) throw new Error(`the driver ended with ${code}: requests failed`);
  const gone = once(gateway, "exit");
  gateway.disconnect();
  await gone;
  return { round: roundOf(taken, readFileSync(log, "utf8")), shadow };
}

function roundOf(taken: GatewayMark, requests: string): Round {
  const [from, to] = [WARM_UP_SECONDS * 1e6, (WARM_UP_SECONDS + seconds) * 1e6];
  const rows = requests
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as { sentMicros: number; firstTokenMicros: number; endMicros: number })
    .filter(({ sentMicros }) => sentMicros >= from && sentMicros < to);
  const ttft = rows.map((row) => (row.firstTokenMicros - row.sentMicros) / 1000);
  const e2e = rows.map((row) => (row.endMicros - row.sentMicros) / 1000);
  return {
    requests: rows.length,
    "decision p50 us": quantile(taken.decisions, 0.5),
    "decision p99 us": quantile(taken.decisions, 0.99),
    "loop delay p50 ms": taken.loopDelayP50Micros / 1000,
    "loop delay p99 ms": taken.loopDelayP99Micros / 1000,
    "TTFT p50 ms": quantile(ttft, 0.5),
    "TTFT p99 ms": quantile(ttft, 0.99),
    "E2E p50 ms": quantile(e2e, 0.5),
    "E2E p99 ms": quantile(e2e, 0.99),
    "own thread CPU ms/s": taken.threadCpuMicros / 1000 / seconds,
    "process CPU ms/s": taken.processCpuMicros / 1000 / seconds,
  };
}

/** What the shadow did in a round, from its page: a shadow that is idle costs nothing and proves nothing. */
async function shadowLine(url: string): Promise<string> {
  const { state, parity, dropped, lagMillis, restarts, cpuSeconds, calibration, evaluation } = (await (
    await fetch(`${url}/gnomon/shadow`)
  ).json()) as ShadowStatus;
  const { fits, heldOut } = calibration;
  const counted = Object.entries(fits).filter(([, count]) => count > 0);
  const error = Object.entries(heldOut).map(([metric, { mean }]) => `${metric} ${(100 * mean).toFixed(1)} %`);
  return [
    `shadow ${state}: ${parity.decisions} decisions replayed, ${parity.differences} different`,
    `${dropped} dropped, ${restarts} restarts, lag ${lagMillis} ms, ${cpuSeconds.toFixed(1)} s of CPU`,
    `fits ${counted.map(([outcome, count]) => `${count} ${outcome}`).join(", ")}`,
    `held out: ${error.join(", ")}; latest evaluation of ${evaluation?.requests ?? 0} requests`,
  ].join("; ");
}

function started(file: string, args: readonly string[]): ChildProcess {
  return kept(spawn(process.execPath, [file, ...args], { stdio: ["ignore", "ignore", "ignore", "ipc"] }));
}

function mark(gateway: ChildProcess): Promise<GatewayMark> {
  gateway.send("mark");
  return message(gateway) as Promise<GatewayMark>;
}

function shown(value: number): string {
  return value.toFixed(Math.abs(value) < 100 ? 1 : 0);
}

function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? NaN;
}
