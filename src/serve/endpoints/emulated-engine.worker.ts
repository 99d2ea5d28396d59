import { type Emulator, type EmulatorOptions, startEmulator } from "#emulator/server.ts";
import type { EngineProcessMessage } from "./engine-process.ts";

/**
 * One emulated engine in a process of its own. Its options come from the process that started it; it ends on a signal as
 * vLLM does, and when that process is gone.
 */
process.once("message", (message) => {
  void start(message as EmulatorOptions).then(
    (emulator) => {
      report({ kind: "started", url: emulator.url });
      endsOn(emulator);
    },
    (error: unknown) => {
      const code = error instanceof Error && "code" in error ? String(error.code) : undefined;
      report({ kind: "failed", code, message: error instanceof Error ? error.message : String(error) });
      process.disconnect?.();
    },
  );
});

function start(options: EmulatorOptions): Promise<Emulator> {
  return startEmulator(options);
}

function report(message: EngineProcessMessage): void {
  // Whoever started it may be gone already.
  process.send?.(message, () => {});
}

function endsOn(emulator: Emulator): void {
  let ending = false;
  const end = (): void => {
    if (ending) return;
    ending = true;
    void emulator.signalTerminate().then(() => process.exit(0));
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "disconnect"] as const) process.once(signal, end);
}
