import type { EmulatorOptions } from "#emulator/server.ts";
import { ROLES_DEFAULT } from "#core/profile/profile-stages.ts";
import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { KvTransferOptions } from "#emulator/kv-transfer/kv-transfer.ts";
import type { KvEventOptions } from "#emulator/kv-events/publisher.ts";
import { ConfigError } from "#config/config-error.ts";
import { loadEngine } from "#config/engine-file.ts";
import type { Config } from "#config/schema.ts";
import { EngineProcess } from "./engine-process.ts";
import { refusedBySystem } from "../process/system-error.ts";

/** Options of each engine of a fleet. Throws ConfigError where one cannot be emulated. */
export function engineOptions(options: Config["emulate"]): EmulatorOptions[] {
  const engine = loadEngine(options.engine);
  if (engine.dataParallel > 1) {
    throw new ConfigError([
      `emulate.engine: dataParallel: expected 1, got ${engine.dataParallel}: an emulated engine is one rank; emulate ` +
        `as many engines (emulate.count)`,
    ]);
  }
  const {
    count,
    host,
    portBase,
    model,
    timeScale,
    seed,
    outputTokensMean,
    tokenizerFile,
    chatTemplate,
    runtimeAdapters,
    kvEvents,
    task,
    sleepMode,
  } = options;
  const size = options.poolingSize ?? (task === "embed" ? 64 : 2);
  const apiKey = options.apiKeyEnv === undefined ? undefined : process.env[options.apiKeyEnv];
  const kvTransfer = connectorOf(options);
  const tokenizer =
    tokenizerFile === undefined || chatTemplate === undefined
      ? undefined
      : { tokenizerPath: tokenizerFile, templatePath: chatTemplate };
  return Array.from({ length: count }, (_, i) => ({
    host,
    port: portBase === 0 ? 0 : portBase + i,
    model,
    engine,
    timeScale,
    seed: seed + i,
    naturalTokensMean: outputTokensMean,
    runtimeAdapters,
    sleepMode,
    ...(task !== "generate" && { pooling: { task, size } }),
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(tokenizer === undefined ? {} : { tokenizer }),
    ...(kvTransfer && { kvTransfer }),
    ...(kvEvents && { kvEvents: kvEventsAt(portBase === 0 ? undefined : portBase + i) }),
  }));
}

function connectorOf({ prefill, kvConnector, kvTransfer }: Config["emulate"]): KvTransferOptions | undefined {
  if (prefill === 0 && !kvConnector) return undefined;
  const { latencyMillis, gigabytesPerSecond, ...rest } = kvTransfer;
  const latencyMicros = Math.round(latencyMillis * MICROS_PER_MILLI);
  return { latencyMicros, bytesPerSecond: gigabytesPerSecond * 1e9, ...rest };
}

/** Labels of an engine of the fleet by its number: the first ones compute prompts for the others, where any do. */
export function roleLabels({ prefill }: Pick<Config["emulate"], "prefill">, number: number): Record<string, string> {
  return prefill === 0 ? {} : { [ROLES_DEFAULT.label]: number < prefill ? "prefill" : "decode" };
}

/** An engine at a fixed port publishes at fixed ones too, so that it can be started again in its own place. */
function kvEventsAt(port: number | undefined): KvEventOptions {
  const away = (by: number) => (port === undefined ? 0 : port + by <= PORT_MAX ? port + by : port - by);
  return { port: away(PUBLISHER_AWAY), replayPort: away(REPLAY_AWAY), topic: "kv", bufferSteps: 10_000 };
}

const PORT_MAX = 65_535;
const PUBLISHER_AWAY = 10_000;
const REPLAY_AWAY = 20_000;

/** Starts each engine in a process of its own, all at once; where one does not start, none goes on. */
export async function startFleet(options: Config["emulate"]): Promise<EngineProcess[]> {
  const all = engineOptions(options);
  const starts = await Promise.allSettled(all.map((one) => EngineProcess.start(one)));
  const fleet = starts.flatMap((start) => (start.status === "fulfilled" ? [start.value] : []));
  const failed = starts.findIndex(({ status }) => status === "rejected");
  if (failed < 0) return fleet;
  await Promise.all(fleet.map((engine) => engine.stop()));
  throw startFailure((starts[failed] as PromiseRejectedResult).reason, all[failed]!);
}

/** Engines that the gateway started, until it stops them. */
export class EmulatedFleet {
  #engines: Promise<EngineProcess[]> = Promise.resolve([]);

  start(options: Config["emulate"]): Promise<EngineProcess[]> {
    this.#engines = startFleet(options);
    return this.#engines;
  }

  /** Those that are still starting, too. */
  async stop(): Promise<void> {
    const engines = await this.#engines.catch(() => []);
    await Promise.all(engines.map((engine) => engine.stop()));
  }
}

/** What kept an engine from starting, as one line for people. */
export function startFailure(error: unknown, { host, port }: EmulatorOptions): Error {
  if (!(error instanceof Error) || !("code" in error)) {
    return new ConfigError([error instanceof Error ? error.message : String(error)]);
  }
  return refusedBySystem(`emulated engine at ${host}:${port}`, error, "choose other ports with --port-base");
}
