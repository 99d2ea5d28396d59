import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { DriveReport } from "#drive/report.ts";
import type { EmulatorStats } from "#emulator/server.ts";
import type { ClosedLoopCase } from "./case.ts";
import { type CoreSeconds, type Order, Program } from "./program.ts";
import { Victim } from "./victim.ts";

export interface LiveRunOptions {
  readonly one: Pick<ClosedLoopCase, "engines" | "engine">;
  /** Engines by name or file, in order, in place of the case's; as many together as it has. */
  readonly fleet?: readonly EngineGroup[];
  readonly profile: string;
  /** Workload files: what is sent, and what warms the engines' code up before it. */
  readonly workload: string;
  readonly warmUp: string;
  /** Folder for the trace and the report. */
  readonly folder: string;
  /** Of the gateway; the engines have the ones after it, and its status pages the one after those. */
  readonly port: number;
  /** Seconds of the engines and of the workload per second of the wall clock. */
  readonly timeScale: number;
  readonly seed: number;
  /** Of the gateway, beside its flags; the run's name where the profile is not all there is to it. */
  readonly config?: { readonly file: string; readonly name: string } | undefined;
  /** File that gets the driver's line for each request. */
  readonly requestsOut?: string | undefined;
  /** So many engines, the first ones, compute prompts for the others by their labels, and all have a KV connector. */
  readonly prefill?: number;
  /** The last engine is killed so long after the workload's start, and a new one takes its place after `forMillis`. */
  readonly loss?: { readonly afterMillis: number; readonly forMillis: number } | undefined;
}

export interface EngineGroup {
  readonly engine: string;
  readonly count: number;
}

/** What one profile did to real sockets on the wall clock, and whether the machine kept up. */
export interface LiveRun {
  readonly profile: string;
  readonly trace: string;
  readonly report: DriveReport;
  readonly machine: MachineReport;
  /** Wall times of the last engine's end and of the new one's first readiness, in milliseconds since 1970. */
  readonly lost?: { readonly fromWallMillis: number; readonly toWallMillis: number } | undefined;
}

/** Milliseconds, and shares of the run's time. */
export interface MachineReport {
  /** Ends of the engines' steps on the wall clock against the engines' own. */
  readonly engineLagMean: number;
  readonly engineLagP99: number;
  readonly driveLagP99: number;
  readonly sentLateP99: number;
  readonly gatewayBusy: number;
  readonly fleetBusy: number;
  /** Ready to run, without a core. */
  readonly gatewayStarved: number;
  /** Of an engine, in the mean. */
  readonly fleetStarved: number;
}

const MODEL = "emulated";
/** A run in which an engine's steps, or the driver's requests, were later than this shows little. */
const LATE_MILLIS_MAX = 25;
const SENT_LATE_MILLIS_MAX = 50;
const STARVED_SHARE_MAX = 0.05;

/** Runs a fresh fleet and a fresh gateway under one profile, and drives the workload through them. */
export async function liveRun(options: LiveRunOptions): Promise<LiveRun> {
  const { one, profile, folder, port, loss } = options;
  const name = options.config?.name ?? profile;
  const trace = join(folder, loss === undefined ? name : `${name}-lost`);
  rmSync(trace, { recursive: true, force: true });
  const urls = Array.from({ length: one.engines }, (_, i) => `http://127.0.0.1:${port + 1 + i}`);
  const fleet = await Promise.all(fleetOrders(options).map((order) => Program.start(order, "gnomon emulates")));
  const victim = loss === undefined ? undefined : await Victim.start(victimOrder(options));
  let gateway: Program | undefined;
  try {
    await Program.run(driveOrder(options, urls, options.warmUp));
    gateway = await Program.start(gatewayOrder(options, urls, trace), "gnomon is ready");
    const before = [gateway.coreSeconds(), coreSecondsOf(fleet, one.engines)] as const;
    const json = `${trace}.json`;
    // Failed requests are a figure of the report.
    const order = driveOrder(options, [`http://127.0.0.1:${port}`], options.workload, json, options.requestsOut);
    const driven = Program.run(order, [0, 1]);
    const lost = loss === undefined ? undefined : await victim?.lose(loss.afterMillis, loss.forMillis);
    await driven;
    const after = [gateway.coreSeconds(), coreSecondsOf(fleet, one.engines)] as const;
    const report = JSON.parse(readFileSync(json, "utf8")) as DriveReport;
    const lags = await Promise.all(urls.map(lagOf));
    const machine = {
      engineLagMean: lags.reduce((sum, lag) => sum + lag.mean / lags.length, 0),
      engineLagP99: Math.max(...lags.map((lag) => lag.p99)),
      driveLagP99: report.driver.eventLoopDelayMillisP99,
      sentLateP99: report.drift.millis.p99 ?? 0,
      ...sharesOf("gateway", before[0], after[0], report.seconds),
      ...sharesOf("fleet", before[1], after[1], report.seconds),
    };
    return { profile, trace, report, machine, lost };
  } finally {
    await gateway?.stop();
    await Promise.all([...fleet.map((one) => one.stop()), victim?.stop()]);
  }
}

/** Why the run's figures are not those of the policy alone; empty where the machine kept up. */
export function troubles({ engineLagP99, sentLateP99, gatewayStarved, fleetStarved }: MachineReport): string[] {
  return [
    ...(engineLagP99 > LATE_MILLIS_MAX ? [`engines ${engineLagP99.toFixed(0)} ms late`] : []),
    ...(sentLateP99 > SENT_LATE_MILLIS_MAX ? [`requests sent ${sentLateP99.toFixed(0)} ms late`] : []),
    ...(gatewayStarved > STARVED_SHARE_MAX ? [`gateway without a core ${percent(gatewayStarved)}`] : []),
    ...(fleetStarved > STARVED_SHARE_MAX ? [`engines without a core ${percent(fleetStarved)}`] : []),
  ];
}

function fleetOrders(options: LiveRunOptions): Order[] {
  const { one, loss, fleet } = options;
  const count = one.engines - (loss === undefined ? 0 : 1);
  let port = options.port + 1;
  return (fleet ?? [{ engine: one.engine, count }]).map((group) => {
    const order = enginesOrder(options, group, port);
    port += group.count;
    return order;
  });
}

/** The last engine alone. */
function victimOrder(options: LiveRunOptions): Order {
  return enginesOrder(options, { engine: options.one.engine, count: 1 }, options.port + options.one.engines);
}

/** All that they ran; what an engine waited in the mean, for they wait at the same time. */
function coreSecondsOf(programs: readonly Program[], engines: number): CoreSeconds {
  const all = programs.map((one) => one.coreSeconds());
  const waited = all.reduce((sum, each) => sum + each.waited, 0);
  return { ran: all.reduce((sum, { ran }) => sum + ran, 0), waited: waited / engines };
}

function enginesOrder({ timeScale, seed, prefill }: LiveRunOptions, group: EngineGroup, port: number): Order {
  const { engine, count } = group;
  const flags = { count, "port-base": port, model: MODEL, engine, seed, "time-scale": timeScale };
  return { command: "emulate", flags: prefill === undefined ? flags : { ...flags, prefill } };
}

function gatewayOrder(options: LiveRunOptions, endpoint: readonly string[], record: string): Order {
  const { profile, port, seed, config } = options;
  const file = config === undefined ? {} : { config: config.file };
  // Endpoints with roles are in the file.
  const named = options.prefill === undefined ? { endpoint } : {};
  const ports = { port, "admin-port": port + options.one.engines + 1 };
  return { command: "serve", flags: { ...file, ...named, ...ports, profile, record, seed, "log-level": "warn" } };
}

function driveOrder(
  options: LiveRunOptions,
  url: readonly string[],
  trace: string,
  json?: string,
  requestsOut?: string,
): Order {
  const { timeScale, seed } = options;
  const bounds = { concurrency: 4_096, "active-sessions": 100_000, "drain-seconds": 120 };
  const report = {
    ...(json !== undefined && { json }),
    ...(requestsOut !== undefined && { "requests-out": requestsOut }),
  };
  return {
    command: "drive",
    flags: { url, trace, model: MODEL, seed, "time-scale": 1 / timeScale, ...bounds, ...report },
  };
}

async function lagOf(url: string): Promise<EmulatorStats["lagMillis"]> {
  const answer = await fetch(`${url}/emulator/stats`);
  return ((await answer.json()) as EmulatorStats).lagMillis;
}

function sharesOf<Name extends "gateway" | "fleet">(
  name: Name,
  before: CoreSeconds,
  after: CoreSeconds,
  seconds: number,
): Record<`${Name}Busy` | `${Name}Starved`, number> {
  return {
    [`${name}Busy`]: (after.ran - before.ran) / seconds,
    [`${name}Starved`]: (after.waited - before.waited) / seconds,
  } as Record<`${Name}Busy` | `${Name}Starved`, number>;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} % of the time`;
}
