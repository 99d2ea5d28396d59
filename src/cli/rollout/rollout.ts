import { Command } from "commander";
import { driveCommands } from "./rollout-drive.ts";
import { rolloutJudgeCommand } from "./rollout-judge.ts";
import { rolloutPlanCommand } from "./rollout-plan.ts";

/** Rollouts of one routing policy against another. */
export function rolloutCommand(): Command {
  const command = new Command("rollout").description(
    "Plan a rollout of one routing profile against another, and control those of a running gateway, which needs its admin token.",
  );
  for (const part of [rolloutPlanCommand(), rolloutJudgeCommand(), ...driveCommands()]) command.addCommand(part);
  return command;
}
