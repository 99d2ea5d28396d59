import { Command } from "commander";
import { capCommand, mergeCommand, scaleCommand, shapeCommand, sliceCommand } from "./trace-change.ts";
import { exportCommand, importCommand } from "./trace-convert.ts";
import { infoCommand } from "./trace-info.ts";

/** Looks at traces, and makes new ones from them. */
export function traceCommand(): Command {
  const command = new Command("trace").description(
    "Inspect, slice, scale, merge and convert recorded traces and workloads of other tools.",
  );
  const parts = [
    infoCommand(),
    importCommand(),
    exportCommand(),
    capCommand(),
    sliceCommand(),
    scaleCommand(),
    shapeCommand(),
    mergeCommand(),
  ];
  for (const part of parts) command.addCommand(part);
  return command;
}
