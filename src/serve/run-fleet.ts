import { startEmulator } from "#emulator/server.ts";
import type { Config } from "#config/schema.ts";
import { CommandFailure } from "./process/command-failure.ts";
import { engineOptions, startFailure, startFleet } from "./endpoints/emulated-fleet.ts";
import { heedSignals } from "./process/early-stop.ts";
import { boundStart, exitSoon, stopSignal } from "./process/stop-signal.ts";

/** What is asked of emulated engines, wherever they run. */
interface Running {
  readonly urls: readonly string[];
  /** Rejects once none of them is left without having been asked to end. */
  readonly ended: Promise<never>;
  stop(): Promise<unknown>;
}

/** Runs emulated engines until asked to stop: one of them in this process, more in a process each. */
export async function runFleet(options: Config["emulate"]): Promise<void> {
  await heedSignals();
  const stopped = stopSignal();
  const started = boundStart(stopped);
  const { urls, ended, ...fleet } = await (options.count === 1 ? runOne(options) : runEach(options));
  started();
  process.stdout.write(`gnomon emulates ${options.model} at ${urls.join(" ")}\n`);
  await Promise.race([stopped, ended]);
  await fleet.stop();
  exitSoon();
}

async function runOne(options: Config["emulate"]): Promise<Running> {
  const [one] = engineOptions(options);
  const emulator = await startEmulator(one!).catch((error: unknown) => {
    throw startFailure(error, one!);
  });
  return { urls: [emulator.url], ended: new Promise(() => {}), stop: () => emulator.signalTerminate() };
}

/** An engine that ends is reported; the others go on. */
async function runEach(options: Config["emulate"]): Promise<Running> {
  const fleet = await startFleet(options);
  const losses = fleet.map(async ({ lost }) => {
    process.stderr.write(`gnomon: ${await lost}\n`);
  });
  const ended = Promise.all(losses).then(() => {
    throw new CommandFailure("all emulated engines ended");
  });
  return { urls: fleet.map(({ url }) => url), ended, stop: () => Promise.all(fleet.map((engine) => engine.stop())) };
}
