import { Command } from "commander";
import { rolloutPlanCommand } from "./rollout-plan.ts";

/** Rollouts of one routing policy against another. */
export function rolloutCommand(): Command {
  return new Command("rollout")
    .description("Plan a rollout of one routing profile against another.")
    .addCommand(rolloutPlanCommand());
}
