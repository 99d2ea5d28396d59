import type { TestContext } from "node:test";
import { CONFIG_SCHEMA } from "#config/schema.ts";
import { startEmulator } from "#emulator/server.ts";
import { engineOptions } from "#serve/endpoints/emulated-fleet.ts";

/** Engines as a gateway emulates them, a thousand times as fast, in this process: there each is a process to start. */
export async function emulatedHere(t: TestContext, count: number): Promise<readonly string[]> {
  const { emulate } = CONFIG_SCHEMA.parse({ emulate: { count, portBase: 0, timeScale: 1000 } });
  const engines = await Promise.all(engineOptions(emulate).map((options) => startEmulator(options)));
  for (const engine of engines) t.after(() => engine.close());
  return engines.map(({ url }) => url);
}
