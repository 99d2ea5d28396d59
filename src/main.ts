#!/usr/bin/env node
import type { Command } from "commander";
import { tolerateClosedPipe } from "./cli/closed-pipe.ts";
import { createProgram, run } from "./cli/program.ts";
import { stopEarly } from "#serve/early-stop.ts";
import { gnomonVersion } from "#serve/gnomon-version.ts";

/** Every command by name, in the help's order, and how to load it: a command reads only the code that it needs. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import("#cli/serve/serve.ts")).serveCommand(),
  emulate: async () => (await import("#cli/serve/emulate.ts")).emulateCommand(),
  drive: async () => (await import("#drive/command.ts")).driveCommand(),
  simulate: async () => (await import("#cli/simulate/simulate.ts")).simulateCommand(),
  replay: async () => (await import("./cli/replay.ts")).replayCommand(),
  "what-if": async () => (await import("#cli/what-if/what-if.ts")).whatIfCommand(),
  tune: async () => (await import("#cli/tune/tune.ts")).tuneCommand(),
  "gepa-evaluate": async () => (await import("#cli/evaluate/evaluate.ts")).gepaEvaluateCommand(),
  "openevolve-evaluate": async () => (await import("#cli/evaluate/evaluate.ts")).openevolveEvaluateCommand(),
  sweep: async () => (await import("#cli/sweep/sweep.ts")).sweepCommand(),
  trace: async () => (await import("#cli/trace/trace.ts")).traceCommand(),
  calibrate: async () => (await import("#cli/calibrate/calibrate.ts")).calibrateCommand(),
  compare: async () => (await import("#cli/compare/compare.ts")).compareCommand(),
  profiles: async () => (await import("./cli/profiles.ts")).profilesCommand(),
  explain: async () => (await import("#cli/explain/explain.ts")).explainCommand(),
  policy: async () => (await import("./cli/policy/policy.ts")).policyCommand(),
  autopilot: async () => (await import("./cli/autopilot/autopilot.ts")).autopilotCommand(),
  rollout: async () => (await import("./cli/rollout/rollout.ts")).rolloutCommand(),
  endpoints: async () => (await import("./cli/endpoints/endpoints.ts")).endpointsCommand(),
  keys: async () => (await import("./cli/keys.ts")).keysCommand(),
  config: async () => (await import("./cli/config.ts")).configCommand(),
};

const VERSION: ReadonlySet<string> = new Set(["-V", "--version"]);
const HELP: ReadonlySet<string> = new Set(["-h", "--help"]);

/** The one that is named, or serve where options alone are given; all for the help and for a word that is no command. */
function namesToLoad(argv: readonly string[]): readonly string[] {
  const [word] = argv;
  if (word === undefined) return ["serve"];
  if (Object.hasOwn(COMMANDS, word)) return [word];
  if (VERSION.has(word)) return [];
  const optionsAlone = word.startsWith("-") && !argv.some((one) => HELP.has(one) || VERSION.has(one));
  return optionsAlone ? ["serve"] : Object.keys(COMMANDS);
}

tolerateClosedPipe(process.stdout);
tolerateClosedPipe(process.stderr);

const argv = process.argv.slice(2);
stopEarly(argv);
const commands = await Promise.all(namesToLoad(argv).map((name) => COMMANDS[name]!()));
process.exitCode = await run(createProgram(gnomonVersion(), commands), argv, (line) =>
  process.stderr.write(`gnomon: ${line}\n`),
);
