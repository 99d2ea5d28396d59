import { setTimeout as sleep } from "node:timers/promises";
import { Command } from "commander";
import type { EndpointControl } from "#live/admin/endpoint-admin.ts";
import { MILLIS_PER_SECOND } from "#core/base/units.ts";
import { callAdmin, type GatewayFlags } from "../admin/admin-client.ts";
import { gatewayOptions } from "../admin/gateway-options.ts";
import { amountFlag } from "../flag/flag-number.ts";
import { endpointTable } from "./endpoint-table.ts";

interface DrainFlags extends GatewayFlags {
  readonly grace?: number;
  readonly wait?: boolean;
}

const POLL_MILLIS = 250;
const GRACE_SECONDS_MAX = 86_400;

/** Shows the endpoints of a running gateway, and keeps new requests from them. */
export function endpointsCommand(): Command {
  const command = new Command("endpoints").description(
    "Show, cordon and drain the endpoints of a running gateway. Needs its admin token.",
  );
  const steps = [
    stepCommand("cordon", "Send an endpoint no new requests; those in flight go on."),
    stepCommand("uncordon", "Send an endpoint requests again."),
  ];
  for (const part of [listCommand(), ...steps, drainCommand()]) command.addCommand(part);
  return command;
}

function listCommand(): Command {
  return gatewayOptions(new Command("list"))
    .description("List endpoints: state, who cordoned them, requests in flight, what else keeps requests from them.")
    .option("--json", "print JSON")
    .action(async (flags: GatewayFlags & { json?: boolean }) => {
      const path = "/endpoints";
      const { endpoints } = (await callAdmin(flags, { method: "GET", path })) as { endpoints: EndpointControl[] };
      print(flags.json === true ? JSON.stringify(endpoints) : endpointTable(endpoints));
    });
}

function stepCommand(step: "cordon" | "uncordon", description: string): Command {
  return gatewayOptions(new Command(step))
    .description(description)
    .argument("<endpoint>", "its id; endpoints list shows them")
    .action(async (id: string, flags: GatewayFlags) => {
      print(endpointTable([await post(flags, id, step, {})]));
    });
}

function drainCommand(): Command {
  return gatewayOptions(new Command("drain"))
    .description("Cordon an endpoint and let it finish its requests.")
    .argument("<endpoint>", "its id; endpoints list shows them")
    .option(
      "--grace <seconds>",
      "move requests that can continue at another endpoint after this time; 0 moves them at once",
      amountFlag(0, GRACE_SECONDS_MAX),
    )
    .option("--wait", "return once this gateway has no more requests there")
    .action(async (id: string, flags: DrainFlags) => {
      const body = flags.grace === undefined ? {} : { graceMillis: Math.round(flags.grace * MILLIS_PER_SECOND) };
      let endpoint = await post(flags, id, "drain", body);
      while (flags.wait === true && endpoint.drain === "draining") {
        await sleep(POLL_MILLIS);
        endpoint = (await callAdmin(flags, { method: "GET", path: pathOf(id) })) as EndpointControl;
      }
      print(endpointTable([endpoint]));
    });
}

async function post(flags: GatewayFlags, id: string, step: string, body: object): Promise<EndpointControl> {
  const call = { method: "POST", path: `${pathOf(id)}/${step}`, body: JSON.stringify(body) } as const;
  return (await callAdmin(flags, call)) as EndpointControl;
}

function pathOf(id: string): string {
  return `/endpoints/${encodeURIComponent(id)}`;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
