#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { calibrateCommand } from "./cli/calibrate.ts";
import { tolerateClosedPipe } from "./cli/closed-pipe.ts";
import { compareCommand } from "./cli/compare.ts";
import { configCommand } from "./cli/config.ts";
import { createProgram, run } from "./cli/program.ts";
import { emulateCommand } from "./cli/emulate.ts";
import { explainCommand } from "./cli/explain.ts";
import { profilesCommand } from "./cli/profiles.ts";
import { replayCommand } from "./cli/replay.ts";
import { serveCommand } from "./cli/serve.ts";
import { simulateCommand } from "./cli/simulate.ts";
import { traceCommand } from "./cli/trace.ts";
import { whatIfCommand } from "./cli/what-if.ts";
import { driveCommand } from "#drive/command.ts";

tolerateClosedPipe(process.stdout);
tolerateClosedPipe(process.stderr);

const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
  version: string;
};
const program = createProgram(version, [
  serveCommand(),
  emulateCommand(),
  driveCommand(),
  simulateCommand(),
  replayCommand(),
  whatIfCommand(),
  traceCommand(),
  calibrateCommand(),
  compareCommand(),
  profilesCommand(),
  explainCommand(),
  configCommand(),
]);
process.exitCode = await run(program, process.argv.slice(2), (line) => process.stderr.write(`gnomon: ${line}\n`));
