#!/usr/bin/env node
import { tolerateClosedPipe } from "./cli/closed-pipe.ts";
import { COMMANDS } from "./cli/commands.ts";
import { EXIT_FAILURE } from "./cli/output/exit-code.ts";
import { createProgram, run } from "./cli/program.ts";
import { stopEarly } from "#serve/process/early-stop.ts";
import { gnomonVersion } from "#serve/process/gnomon-version.ts";

const VERSION: ReadonlySet<string> = new Set(["-V", "--version"]);
const HELP: ReadonlySet<string> = new Set(["-h", "--help", "--help-all"]);

/** The one that is named, or serve where options alone are given; all for the help and for a word that is no command. */
function namesToLoad(argv: readonly string[]): readonly string[] {
  const [word] = argv;
  if (word === undefined) return ["serve"];
  if (Object.hasOwn(COMMANDS, word)) return [word];
  if (VERSION.has(word)) return [];
  const optionsAlone = word.startsWith("-") && !argv.some((one) => HELP.has(one) || VERSION.has(one));
  return optionsAlone ? ["serve"] : Object.keys(COMMANDS);
}

let isOutputLost = false;
tolerateClosedPipe(process.stdout, (reason) => {
  isOutputLost = true;
  process.exitCode = EXIT_FAILURE;
  process.stderr.write(`gnomon: standard output: ${reason}\n`);
});
// Where its notes go there is nobody to report it to.
tolerateClosedPipe(process.stderr, () => {});

const argv = process.argv.slice(2);
stopEarly(argv);
const commands = await Promise.all(namesToLoad(argv).map((name) => COMMANDS[name]!.load()));
const exitCode = await run(createProgram(gnomonVersion(), commands), argv, (line) =>
  process.stderr.write(`gnomon: ${line}\n`),
);
process.exitCode = exitCode === 0 && isOutputLost ? EXIT_FAILURE : exitCode;
