import { Command } from "commander";
import type { Given } from "../flag/key-flags.ts";
import { addServeOptions, servePlan } from "./serve-options.ts";
import { keepCompiled } from "#serve/process/keep-compiled.ts";
import { keepRequestsYoung } from "#serve/process/young-objects.ts";

export function serveCommand(): Command {
  const command = new Command("serve").description(
    "Route requests to engines; without any endpoint, start an emulated fleet and route to that.",
  );
  return addServeOptions(command).action(async (given: Given) => {
    const plan = servePlan(given, process.env);
    keepRequestsYoung();
    keepCompiled();
    // Loaded only now: other commands do not need it and start in half the time.
    const { beginTable } = await import("#serve/tokens/begun-table.ts");
    const tables = await beginTable(plan.config, process.env);
    const { runGateway } = await import("#serve/run-gateway.ts");
    await runGateway({ ...plan, tables });
  });
}
