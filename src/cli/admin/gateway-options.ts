import type { Command } from "commander";

/** Where a running gateway is, and how to be let in: GatewayFlags. */
export function gatewayOptions(command: Command): Command {
  return command
    .option("--url <url>", "the gateway", "http://127.0.0.1:8080")
    .option("--token-env <name>", "variable that holds its admin token", "GNOMON_ADMIN_TOKEN")
    .option("--token-file <file>", "file that holds it, instead");
}
