import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { ROUTERS } from "../../test/serve/migrate/record/routers.ts";
import { kept } from "../children.ts";
import { freePort } from "../free-port.ts";

const CONFIG = join(import.meta.dirname, "../../deploy/envoy.yaml");
const TAP_CONFIG = join(import.meta.dirname, "../../deploy/envoy-tap.yaml");

interface EnvoyConfig {
  readonly static_resources: {
    readonly listeners: [Listener];
    readonly clusters: [Cluster, Cluster, ...Cluster[]];
  };
}
interface Listener {
  address: object;
  readonly filter_chains: [
    {
      readonly filters: [{ readonly typed_config: { http_filters: object[]; readonly route_config: RouteConfig } }];
    },
  ];
}
interface RouteConfig {
  readonly virtual_hosts: [{ response_headers_to_add?: readonly object[] }];
}
interface Cluster {
  readonly name: string;
  readonly load_assignment: { endpoints: readonly object[] };
}

const at = (address: string, port: number) => ({ socket_address: { address, port_value: port } });

/** What an Envoy is to have beside the picker's filter. */
export interface Beside {
  /** Its answers name the engine by this header. */
  readonly header?: string;
  /** It shows a tap at this port what passes, by a filter before the picker's or behind it. */
  readonly shown?: { readonly port: number; readonly order: "first" | "last" };
}

/** llm-d's picker behind an Envoy, which are two programs. Resolves with the port once it answers. */
export async function startEnvoyWithPicker(
  programs: { readonly envoy: string; readonly picker: string },
  engines: readonly string[],
  scratch: string,
  { header, shown }: Beside = {},
): Promise<number> {
  const ports = engines.map((url) => Number(new URL(url).port));
  const picker = await ROUTERS["llm-d"]!({ command: programs.picker, engines: ports, scratch });
  const port = await freePort();
  const config = parse(readFileSync(CONFIG, "utf8")) as EnvoyConfig;
  const { listeners, clusters } = config.static_resources;
  listeners[0].address = at("127.0.0.1", port);
  const connection = listeners[0].filter_chains[0].filters[0].typed_config;
  const [host] = connection.route_config.virtual_hosts;
  if (header !== undefined)
    host.response_headers_to_add = [{ header: { key: header, value: "%UPSTREAM_REMOTE_ADDRESS%" } }];
  clusters[0].load_assignment.endpoints = [{ lb_endpoints: [{ endpoint: { address: at("127.0.0.1", picker.port) } }] }];
  clusters[1].load_assignment.endpoints = [
    {
      lb_endpoints: engines.map((url) => ({
        endpoint: { address: at(new URL(url).hostname, Number(new URL(url).port)) },
      })),
    },
  ];
  if (shown !== undefined) {
    const tap = (parse(readFileSync(TAP_CONFIG, "utf8")) as EnvoyConfig).static_resources;
    const [show] = tap.listeners[0].filter_chains[0].filters[0].typed_config.http_filters as [object];
    const cluster = tap.clusters.find(({ name }) => name === "gnomon")!;
    cluster.load_assignment.endpoints = [{ lb_endpoints: [{ endpoint: { address: at("127.0.0.1", shown.port) } }] }];
    clusters.push(cluster);
    connection.http_filters.splice(shown.order === "first" ? 0 : connection.http_filters.length - 1, 0, show);
  }
  const file = join(scratch, `envoy-${port}.yaml`);
  writeFileSync(file, stringify(config));
  const flags = ["--disable-hot-restart", "--concurrency", "1", "--log-level", "error"];
  kept(spawn(programs.envoy, ["-c", file, ...flags], { stdio: ["ignore", "ignore", "inherit"] }));
  return port;
}
