import { Command } from "commander";
import { type Emulator, startEmulator } from "#emulator/server.ts";
import { ConfigError } from "#config/config-error.ts";
import { loadEngine } from "#config/engine-file.ts";
import { loadConfig } from "#config/load.ts";
import type { Config } from "#config/schema.ts";
import { type Given, type KeyFlag, addKeyFlags, keyOverrides, textOf } from "./key-flags.ts";
import { exitSoon, stopSignal } from "./stop-signal.ts";
import { refusedBySystem } from "./system-error.ts";

const KEY_FLAGS: readonly KeyFlag[] = [
  { flags: "--count <engines>", path: ["emulate", "count"], meaning: "engines to run, each on its own port" },
  { flags: "--host <address>", path: ["emulate", "host"], meaning: "address to listen on" },
  {
    flags: "--port-base <port>",
    path: ["emulate", "portBase"],
    meaning: `port of the first engine; 0 takes free ones (default 9000)`,
  },
  { flags: "--model <name>", path: ["emulate", "model"], meaning: "model name to serve" },
  {
    flags: "--engine <file>",
    path: ["emulate", "engine"],
    meaning: "engine by name, or the path of an engine file; see config/engines",
  },
  { flags: "--time-scale <factor>", path: ["emulate", "timeScale"], meaning: "engine seconds per second" },
  {
    flags: "--output-tokens-mean <tokens>",
    path: ["emulate", "outputTokensMean"],
    meaning: "mean length of an answer that ends by itself",
  },
  { flags: "--tokenizer-file <file>", path: ["emulate", "tokenizerFile"], meaning: "tokenizer.json to count with" },
  {
    flags: "--chat-template <file>",
    path: ["emulate", "chatTemplate"],
    meaning: "tokenizer_config.json or template, beside --tokenizer-file",
  },
  { flags: "--seed <integer>", path: ["emulate", "seed"], meaning: "seed of ids and of fault draws" },
];

const PORT_BASE = 9000;

/** What an emulating process tells the one that started it. */
export interface FleetReady {
  readonly kind: "fleet-ready";
  readonly urls: readonly string[];
}

export function emulateCommand(): Command {
  const command = new Command("emulate").description(
    "Run emulated vLLM engines: their API, metrics and timing, without a GPU.",
  );
  return addKeyFlags(command, KEY_FLAGS).action(async (given: Given) => {
    const overrides = keyOverrides(given, KEY_FLAGS);
    const config = loadConfig({ file: textOf(given, "config"), environment: process.env, overrides });
    const { emulate } = config;
    const portBase = emulate.portBase === 0 && given["portBase"] === undefined ? PORT_BASE : emulate.portBase;
    await emulateUntilStopped({ ...emulate, portBase });
  });
}

async function emulateUntilStopped(options: Config["emulate"]): Promise<void> {
  const stopped = Promise.race([stopSignal(), parentGone()]);
  const fleet = await startFleet(options);
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
