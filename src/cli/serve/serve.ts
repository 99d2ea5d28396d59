import { Command } from "commander";
import type { Given } from "../flag/key-flags.ts";
import { addServeOptions, servePlan } from "./serve-options.ts";
import type { ServePlan } from "#serve/plan/serve-plan.ts";
import { setV8 } from "#serve/process/v8-settings.ts";

export function serveCommand(): Command {
  const command = new Command("serve").description(
    "Route requests to engines; without any endpoint, start an emulated fleet and route to that.",
  );
  return addServeOptions(command).action((given: Given) => startGateway(servePlan(given, process.env)));
}

/** Runs a gateway until it is asked to stop. */
export async function startGateway(plan: ServePlan): Promise<void> {
  setV8();
  // Loaded only now: other commands do not need it and start in half the time.
  const { beginTable } = await import("#serve/tokens/begun-table.ts");
  const tables = await beginTable(plan.config, process.env);
  const { runGateway } = await import("#serve/run-gateway.ts");
  await runGateway({ ...plan, tables });
}
