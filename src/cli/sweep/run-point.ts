import { Command, CommanderError } from "commander";
import { ConfigError } from "#config/config-error.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";
import { simulated } from "../simulate/simulate.ts";
import type { SimulateFlags } from "../simulate/simulate-flags.ts";
import { addSimulateFlags } from "../simulate/simulate-options.ts";
import { whatIfText } from "../what-if/what-if.ts";
import { type WhatIfFlags, whatIfOptions } from "../what-if/what-if-flags.ts";
import type { SweepCommandName, SweepPoint } from "./sweep-file.ts";

/** Checks the command lines of all points, before any is run. Throws ConfigError with the first that is wrong. */
export function checkPoints(command: SweepCommandName, points: readonly SweepPoint[]): void {
  for (const { index, axes, argv } of points) {
    try {
      parsed(command, argv);
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error;
      const why = error.message.replace(/^error: /, "");
      throw new ConfigError([`grid: point ${index} (${JSON.stringify(axes)}) is no ${command}: ${why}`]);
    }
  }
}

/**
 * What a point comes to, as one line of JSON without its end: the result, or the error that this point ends with on any
 * machine.
 */
export async function runPoint(command: SweepCommandName, { index, axes, argv }: SweepPoint): Promise<string> {
  const head = `{"point":${index},"axes":${JSON.stringify(axes)},`;
  try {
    return `${head}"result":${await resultText(command, argv)}}`;
  } catch (error) {
    if (!(error instanceof ConfigError || error instanceof CommandFailure)) throw error;
    return `${head}"error":${JSON.stringify(error.message)}}`;
  }
}

async function resultText(command: SweepCommandName, argv: readonly string[]): Promise<string> {
  const asked = parsed(command, argv);
  if (command === "what-if") return whatIfText(asked.args[0]!, asked.opts<WhatIfFlags>());
  const { results } = await simulated(asked.opts<SimulateFlags>(), () => {});
  return JSON.stringify(results);
}

function parsed(command: SweepCommandName, argv: readonly string[]): Command {
  const made = command === "what-if" ? whatIfOptions() : addSimulateFlags(new Command("simulate"));
  made.exitOverride().configureOutput({ outputError: () => {}, writeOut: () => {} });
  return made.parse(argv, { from: "user" });
}
