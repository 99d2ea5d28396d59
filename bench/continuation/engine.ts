/**
 * Child process: an emulated engine on a port, 0 for a free one, with steps of so many milliseconds, of a model; then,
 * where it is not to be as others, the tokens of its blocks, how many there are, and the most requests that run at once.
 * Its parent gets the port, and ends it as engines are ended.
 */
import { startEmulator } from "#emulator/server.ts";
import { engineDefaults } from "#engine/config.ts";

const [port, stepMillis] = process.argv.slice(2, 4).map(Number);
const model = process.argv[4] ?? "tiny";
const [blockTokens = 16, kvBlocks = 100_000, sequencesMax = 1_024] = process.argv.slice(5, 8).map(Number);
const engine = engineDefaults({
  blockTokens,
  kvBlocks,
  sequencesMax,
  stepTime: {
    kind: "coefficients",
    baseMicros: 1_000 * (stepMillis ?? 100),
    perPrefillTokenMicros: 10,
    perDecodeMicros: 10,
  },
});
const emulator = await startEmulator({
  host: "127.0.0.1",
  port: port ?? 0,
  model,
  engine,
  timeScale: 1,
  seed: 1,
});
process.send!({ port: emulator.port });
process.once("SIGTERM", () => void emulator.signalTerminate().then(() => process.exit(0)));
process.on("disconnect", () => process.exit(0));
