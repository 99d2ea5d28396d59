import { CommanderError } from "commander";
import { driveCommand } from "#drive/command.ts";

// `gnomon drive` as a process of its own, for tests of its signals.
try {
  await driveCommand().exitOverride().parseAsync(process.argv.slice(2), { from: "user" });
} catch (error) {
  if (!(error instanceof CommanderError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = error.exitCode;
}
