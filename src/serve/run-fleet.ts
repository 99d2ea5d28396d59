import { type Emulator, startEmulator } from "#emulator/server.ts";
import { ConfigError } from "#config/config-error.ts";
import { loadEngine } from "#config/engine-file.ts";
import type { Config } from "#config/schema.ts";
import { exitSoon, stopSignal } from "./stop-signal.ts";
import { refusedBySystem } from "./system-error.ts";

/** What an emulating process tells the one that started it. */
export interface FleetReady {
  readonly kind: "fleet-ready";
  readonly urls: readonly string[];
}

/** Runs emulated engines until told to stop, or until the process that started this one is gone. */
export async function runFleet(options: Config["emulate"]): Promise<void> {
  const fleet = await startFleet(options);
  const stopped = Promise.race([stopSignal(), parentGone()]);
  const urls = fleet.map((emulator) => emulator.url);
  const ready: FleetReady = { kind: "fleet-ready", urls };
  const told = process.send?.(ready) !== undefined;
  if (!told) process.stdout.write(`gnomon emulates ${options.model} at ${urls.join(" ")}\n`);
  await stopped;
  await Promise.all(fleet.map((emulator) => emulator.signalTerminate()));
  if (process.connected) process.disconnect?.();
  exitSoon();
}

async function startFleet(options: Config["emulate"]): Promise<Emulator[]> {
  const engine = loadEngine(options.engine);
  if (engine.dataParallel > 1) {
    throw new ConfigError([
      `emulate.engine: dataParallel: expected 1, got ${engine.dataParallel}: an emulated engine is one rank; emulate ` +
        `as many engines (emulate.count)`,
    ]);
  }
  const fleet: Emulator[] = [];
  const { host, portBase, model, timeScale, tokenizerFile, chatTemplate, apiKeyEnv } = options;
  const apiKey = apiKeyEnv === undefined ? undefined : process.env[apiKeyEnv];
  const tokenizer =
    tokenizerFile === undefined || chatTemplate === undefined
      ? undefined
      : { tokenizerPath: tokenizerFile, templatePath: chatTemplate };
  for (let i = 0; i < options.count; i++) {
    const port = portBase === 0 ? 0 : portBase + i;
    try {
      const emulator = await startEmulator({
        host,
        port,
        model,
        engine,
        timeScale,
        seed: options.seed + i,
        naturalTokensMean: options.outputTokensMean,
        ...(apiKey === undefined ? {} : { apiKey }),
        ...(tokenizer === undefined ? {} : { tokenizer }),
      });
      fleet.push(emulator);
    } catch (error) {
      await Promise.all(fleet.map((emulator) => emulator.close()));
      if (!(error instanceof Error) || !("code" in error)) throw new ConfigError([errorLine(error)]);
      throw refusedBySystem(`emulated engine at ${host}:${port}`, error, "choose other ports with --port-base");
    }
  }
  return fleet;
}

function errorLine(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Resolves when the process that started this one is gone; never, where none did. */
function parentGone(): Promise<void> {
  return new Promise((resolve) => {
    if (process.send !== undefined) process.once("disconnect", resolve);
  });
}
