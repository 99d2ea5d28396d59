import { Command } from "commander";
import { ConfigError } from "#config/config-error.ts";
import type { Given, KeyFlag } from "../flag/key-flags.ts";
import { otherDecides } from "#config/tap-section.ts";
import { addServeOptions, servePlan } from "./serve-options.ts";
import { startGateway } from "./serve.ts";

const TAP_FLAGS: readonly KeyFlag[] = [
  {
    flags: "--router <url>",
    path: ["tap", "router"],
    meaning: "the other router, which gets every request as it came",
  },
  {
    flags: "--envoy-port <port>",
    path: ["tap", "envoy", "port"],
    meaning: "in place of --router: port on which an Envoy shows what passes it (external processing)",
  },
  { flags: "--name <name>", path: ["tap", "name"], meaning: "its name in the trace, such as sglang-router" },
  {
    flags: "--served-header <name>",
    path: ["tap", "servedHeaders"],
    isList: true,
    meaning: "header of its answers that names the engine; those of known routers need none",
  },
];

/** A gateway in front of another router, or beside an Envoy: that one decides, and what it decides is recorded. */
export function tapCommand(): Command {
  const command = new Command("tap").description(
    "Stand in front of another router, or beside an Envoy, and record where each request is sent. Everything passes on as it came.",
  );
  return addServeOptions(command, TAP_FLAGS).action(async (given: Given) => {
    const plan = servePlan(given, process.env, TAP_FLAGS);
    const { tap, record } = plan.config;
    const missing = [
      ...(otherDecides(tap) ? [] : ["--router: expected the origin of the other router, or --envoy-port, got neither"]),
      ...(record.directory === undefined ? ["--record: expected the folder for the trace, got none"] : []),
    ];
    if (missing.length > 0) throw new ConfigError(missing);
    await startGateway(plan);
  });
}
