import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { drive } from "#drive/drive.ts";
import { DRIVE_DEFAULTS } from "#drive/options.ts";
import { startEmulator } from "#emulator/server.ts";
import type { EngineConfig } from "#engine/config.ts";
import { workloadFileHeader, workloadLine } from "#trace/export/workload-file.ts";
import { Program } from "../closed-loop/program.ts";
import { ENGINE, type InjectedTraffic, injectedTraffic, slowPrefill } from "./injected-cause.ts";
import { type RecordedName, recordedTraffic } from "./recorded-traffic.ts";

export const LIVE_CAUSES = ["index", "cache", "tenant", "engines", "prefill", "policy", "none"] as const;
/** What is injected: as of injectedTrace; prefill: one engine computes prompts at a third of its speed. */
export type LiveCause = (typeof LIVE_CAUSES)[number];
/** chat: our own generator's; the others as in recordedTraffic. */
export type LiveWorkload = "chat" | RecordedName;

export interface LiveCaseAsked {
  readonly cause: LiveCause;
  readonly workload: LiveWorkload;
  readonly seed: number;
}

/** Rates are per second of the workload, whose own time runs at `timeScale` of the clock's. */
export interface LiveSetting {
  readonly folder: string;
  readonly port: number;
  readonly timeScale: number;
  readonly traces: string;
}

const ENGINES = 4;
const HOST = "127.0.0.1";
const MODEL = "emulated";
const CONVERSATIONS = 100;
const SLOW_FACTOR = 2;
const PROFILE = "llm-d";

const CHAT_SMALL_BLOCKS = 800;
/** Of the workload's own time: what the profile is made for. */
const SCRAPE_MILLIS = 50;
/** One that is reserved, and one to write into. */
const BLOCKS_BESIDE = 2;

/** What one run came to on the wall clock. */
export interface LiveResult {
  readonly answers: number;
  readonly failed: number;
  readonly ttftMillis: number;
  /** Ends of engines' steps, and requests, after they were due: the 99th percentile. */
  readonly engineLateMillis: number;
  readonly sentLateMillis: number;
  /** Engines' time as a part of the clock's. */
  readonly timeScale: number;
}

/** Runs one case over sockets, recorder on, and leaves its trace in the folder. */
export async function liveCause(asked: LiveCaseAsked, setting: LiveSetting): Promise<LiveResult> {
  const { cause, seed } = asked;
  const { port, timeScale } = setting;
  const folder = join(setting.folder, nameOf(asked));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const traffic = await trafficOf(asked, setting.traces);
  const { requests } = traffic;
  const workload = join(folder, "workload.jsonl");
  writeFileSync(workload, workloadFileHeader([nameOf(asked)]) + requests.map(workloadLine).join(""));
  const usual = engineFor(cause, traffic);
  const other = cause === "engines" ? slower(usual) : cause === "prefill" ? slowPrefill(usual) : usual;
  const engines = await Promise.all(
    Array.from({ length: ENGINES }, (_, i) =>
      startEmulator({
        host: HOST,
        port: port + 1 + i,
        model: MODEL,
        engine: i === 0 ? other : usual,
        timeScale,
        seed: seed + i,
        kvEvents: { ...portsOf(port + 1 + i), topic: "kv", bufferSteps: 10_000 },
      }),
    ),
  );
  let gateway: Program | undefined;
  try {
    gateway = await Program.start(
      {
        command: "serve",
        flags: {
          config: gatewayConfig(folder, cause, setting),
          port,
          "admin-port": port + ENGINES + 1,
          profile: cause === "policy" ? badProfile(folder) : PROFILE,
          record: join(folder, "trace"),
          "log-level": "warn",
        },
      },
      "gnomon is ready",
    );
    const report = await drive({
      ...DRIVE_DEFAULTS,
      urls: [`http://${HOST}:${port}`],
      workload,
      model: MODEL,
      promptForm: "tokens",
      seed,
      timeScale: 1 / timeScale,
      concurrency: 4_096,
      activeSessionsMax: 100_000,
    });
    const { ok = 0, ...others } = report.outcomes;
    return {
      answers: ok,
      failed: Object.values(others).reduce((sum, count) => sum + count, 0),
      ttftMillis: report.ttftMillis.mean ?? NaN,
      engineLateMillis: Math.max(...engines.map((one) => one.stats().lagMillis.p99)),
      sentLateMillis: report.drift.millis.p99 ?? 0,
      timeScale,
    };
  } finally {
    await gateway?.stop();
    await Promise.all(engines.map((one) => one.close()));
  }
}

export function nameOf({ workload, cause, seed }: LiveCaseAsked): string {
  return `${workload}-${cause}-${seed}`;
}

function engineFor(cause: LiveCause, { kvBlocks: usual, smallKvBlocks }: InjectedTraffic): EngineConfig {
  const kvBlocks = cause === "cache" ? smallKvBlocks : usual;
  return { ...ENGINE, kvBlocks, modelTokensMax: Math.min(ENGINE.modelTokensMax, (kvBlocks - 1) * ENGINE.blockTokens) };
}

function slower(engine: EngineConfig): EngineConfig {
  const { stepTime } = engine;
  if (stepTime.kind !== "coefficients") throw new TypeError(`expected coefficients, got ${stepTime.kind}`);
  const { kind, ...steps } = stepTime;
  const slow = Object.fromEntries(Object.entries(steps).map(([name, micros]) => [name, SLOW_FACTOR * micros]));
  return { ...engine, stepTime: { ...stepTime, ...(slow as Partial<typeof stepTime>), kind } };
}

/** Prefixes weigh a hundredth of what they should. */
function badProfile(folder: string): string {
  const good = readFileSync(`config/profiles/${PROFILE}.yaml`, "utf8");
  const bad = good.replace("weight: 3}", "weight: 0.03}").replace(`name: ${PROFILE}`, "name: bad-weight");
  if (!bad.includes("0.03") || !bad.includes("bad-weight")) throw new Error(`${PROFILE}.yaml is not as expected`);
  const file = join(folder, "bad-weight.yaml");
  writeFileSync(file, bad);
  return file;
}

/** An index that is wrong: the gateway follows each engine's events at its neighbour's port. */
function gatewayConfig(folder: string, cause: LiveCause, { port, timeScale }: LiveSetting): string {
  const endpoints = Array.from({ length: ENGINES }, (_, i) => ({
    url: `http://127.0.0.1:${port + 1 + i}`,
    id: `e${i}`,
    ...(cause === "index" && { labels: labelsOf(portsOf(port + 1 + ((i + 1) % ENGINES))) }),
  }));
  const intervalMillis = Math.round(SCRAPE_MILLIS / timeScale);
  const file = join(folder, "gateway.yaml");
  writeFileSync(file, JSON.stringify({ endpoints, kvEvents: { mode: "on" }, scrape: { intervalMillis } }));
  return file;
}

/** Where an engine at this port publishes its KV events, and where it is asked for those that were missed. */
function portsOf(port: number): { readonly port: number; readonly replayPort: number } {
  return { port: port + 10_000, replayPort: port + 20_000 };
}

function labelsOf({ port, replayPort }: ReturnType<typeof portsOf>): Readonly<Record<string, string>> {
  return { "gnomon/kv-events-port": String(port), "gnomon/kv-events-replay-port": String(replayPort) };
}

/**
 * A gateway that follows KV events makes do with less than one that guesses: a small cache is one that holds the longest
 * request and no more, or of our own generator's, which are short, one that is stated.
 */
async function trafficOf({ cause, seed, workload }: LiveCaseAsked, traces: string): Promise<InjectedTraffic> {
  if (workload !== "chat") {
    const traffic = await recordedTraffic({ name: workload, cause, seed, traces });
    const longest = traffic.requests.reduce((most, one) => Math.max(most, one.promptTokens + one.outputTokens), 0);
    return { ...traffic, smallKvBlocks: Math.ceil(longest / ENGINE.blockTokens) + BLOCKS_BESIDE };
  }
  const of = cause === "tenant" ? cause : "none";
  return { ...injectedTraffic({ cause: of, seed, conversations: CONVERSATIONS }), smallKvBlocks: CHAT_SMALL_BLOCKS };
}
