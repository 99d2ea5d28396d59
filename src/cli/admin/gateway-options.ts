import type { Command } from "commander";
import { ADMIN_TOKEN_VARIABLE } from "#config/admin-section.ts";

/** Where a running gateway is, and how to be let in: GatewayFlags. */
export function gatewayOptions(command: Command): Command {
  return command
    .option("--url <url>", "where the gateway is administered (listen.adminPort)", "http://127.0.0.1:8081")
    .option("--token-env <name>", "environment variable that holds its admin token", ADMIN_TOKEN_VARIABLE)
    .option("--token-file <file>", "file that holds its admin token, instead");
}
