import { Command } from "commander";
import { addServeOptions, servePlan } from "./serve-options.ts";

export function serveCommand(): Command {
  const command = new Command("serve").description(
    "Route requests to engines; without endpoints, to an emulated fleet that it starts itself.",
  );
  return addServeOptions(command).action((given: Record<string, unknown>) => {
    const plan = servePlan(given, process.env);
    process.stdout.write(`${JSON.stringify(plan.profile)}\n`);
  });
}
