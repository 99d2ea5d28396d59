import {
  type Gateway,
  hasLabels,
  parentsAt,
  type Pod,
  type Pool,
  poolOf,
  type Route,
  type Rule,
  type Service,
} from "./resources.ts";

/** What there is at a time. */
export interface Shown {
  readonly gateways: readonly Gateway[];
  readonly routes: readonly Route[];
  readonly pools: readonly Pool[];
  readonly services: readonly Service[];
  readonly pods: readonly { readonly pod: Pod; readonly ip: string | undefined; readonly isReady: boolean }[];
}

const TYPE = "type.googleapis.com/envoy.extensions";
/** The tests name endpoints in a header, where a proxy would state a subset of its own: with all ports, or with one. */
const SUBSET = `
function envoy_on_request(handle)
  local asked = handle:headers():get("test-epp-endpoint-selection")
  if asked == nil then return end
  local list = asked:gsub("[^,]+", function(one)
    if one:find(":") then return one end
    return one .. ":3000," .. one .. ":3001," .. one .. ":3002," .. one .. ":3004"
  end)
  handle:streamInfo():dynamicMetadata():set("envoy.lb.subset_hint", "x-gateway-destination-endpoint-subset", list)
end`;

export function addressOf(gateway: Gateway, gateways: readonly Gateway[]): string {
  const names = gateways.map(({ metadata }) => metadata.name).sort();
  return `127.0.2.${1 + names.indexOf(gateway.metadata.name)}`;
}

/** Of its picker. */
export function serviceOf({ spec, metadata }: Pool, { services }: Shown): Service | undefined {
  const { endpointPickerRef } = spec;
  return services.find(
    (service) => service.metadata.name === endpointPickerRef?.name && service.metadata.namespace === metadata.namespace,
  );
}

function clusterName({ metadata }: Pool): string {
  return `pool-${metadata.name}`;
}

/** Envoy names it as the authority it asks, where blanks are none. */
function pickerName({ metadata }: Pool): string {
  return `picker-${metadata.name}`;
}

function endpoint(address: string, port: number): object {
  return { endpoint: { address: { socket_address: { address, port_value: port } } } };
}

function protocol(options: object): object {
  const kind = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
  return { [kind]: { "@type": `${TYPE}.upstreams.http.v3.HttpProtocolOptions`, explicit_http_config: options } };
}

function podsWith(labels: Readonly<Record<string, string>> | undefined, namespace: string, { pods }: Shown) {
  if (labels === undefined || Object.keys(labels).length === 0) return [];
  return pods.flatMap(({ pod, ip, isReady }) =>
    isReady && ip !== undefined && pod.metadata.namespace === namespace && hasLabels(pod, labels) ? [ip] : [],
  );
}

function poolCluster(pool: Pool, shown: Shown): object {
  const { spec, metadata } = pool;
  const ips = podsWith(spec.selector.matchLabels, metadata.namespace, shown);
  const isH2c = spec.appProtocol === "kubernetes.io/h2c";
  const key = (name: string) => ({ key: "envoy.lb", path: [{ key: name }] });
  const roundRobin = { "@type": `${TYPE}.load_balancing_policies.round_robin.v3.RoundRobin` };
  const name = clusterName(pool);
  return {
    "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
    name,
    type: "STATIC",
    connect_timeout: "1s",
    typed_extension_protocol_options: protocol(isH2c ? { http2_protocol_options: {} } : { http_protocol_options: {} }),
    load_balancing_policy: {
      policies: [
        {
          typed_extension_config: {
            name: "envoy.load_balancing_policies.override_host",
            typed_config: {
              "@type": `${TYPE}.load_balancing_policies.override_host.v3.OverrideHost`,
              override_host_sources: [
                { metadata: key("x-gateway-destination-endpoint") },
                { header: "x-gateway-destination-endpoint" },
              ],
              selected_host_key: key("x-gateway-destination-endpoint-served"),
              fallback_policy: {
                policies: [
                  {
                    typed_extension_config: {
                      name: "envoy.load_balancing_policies.round_robin",
                      typed_config: roundRobin,
                    },
                  },
                ],
              },
            },
          },
        },
      ],
    },
    load_assignment: {
      cluster_name: name,
      endpoints: [{ lb_endpoints: ips.flatMap((ip) => spec.targetPorts.map(({ number }) => endpoint(ip, number))) }],
    },
  };
}

function pickerCluster(pool: Pool, shown: Shown): object {
  const service = serviceOf(pool, shown);
  const ips = podsWith(service?.spec.selector, pool.metadata.namespace, shown);
  const name = pickerName(pool);
  return {
    "@type": "type.googleapis.com/envoy.config.cluster.v3.Cluster",
    name,
    type: "STATIC",
    connect_timeout: "1s",
    typed_extension_protocol_options: protocol({ http2_protocol_options: {} }),
    transport_socket: {
      name: "envoy.transport_sockets.tls",
      typed_config: {
        "@type": `${TYPE}.transport_sockets.tls.v3.UpstreamTlsContext`,
        common_tls_context: { alpn_protocols: ["h2"] },
      },
    },
    load_assignment: { cluster_name: name, endpoints: [{ lb_endpoints: ips.map((ip) => endpoint(ip, 9002)) }] },
  };
}

function processor(pool: Pool): object {
  return {
    overrides: {
      grpc_service: { envoy_grpc: { cluster_name: pickerName(pool) }, timeout: "10s" },
      failure_mode_allow: pool.spec.endpointPickerRef?.failureMode === "FailOpen",
    },
  };
}

function target(route: Route, { backendRefs = [] }: Rule, shown: Shown): object {
  const found = backendRefs.flatMap(({ name, weight = 1 }) => {
    const pool = poolOf(route, name, shown.pools);
    return pool === undefined || serviceOf(pool, shown) === undefined ? [] : [{ pool, weight }];
  });
  if (found.length < backendRefs.length || found.length === 0) return { direct_response: { status: 500 } };
  const perRoute = (pool: Pool) => ({
    "envoy.filters.http.ext_proc": { "@type": `${TYPE}.filters.http.ext_proc.v3.ExtProcPerRoute`, ...processor(pool) },
  });
  const clusters = found.map(({ pool, weight }) => ({
    name: clusterName(pool),
    weight,
    typed_per_filter_config: perRoute(pool),
  }));
  return { route: { weighted_clusters: { clusters }, timeout: "0s" } };
}

function virtualHosts(gateway: Gateway, shown: Shown): object[] {
  const byHost = new Map<string, { readonly prefix: string; readonly to: object }[]>();
  for (const route of shown.routes.filter((one) => parentsAt(one, gateway).length > 0)) {
    for (const host of route.spec.hostnames ?? ["*"]) {
      const list = byHost.get(host) ?? [];
      byHost.set(host, list);
      for (const rule of route.spec.rules) {
        for (const { path } of rule.matches ?? [{}])
          list.push({ prefix: path?.value ?? "/", to: target(route, rule, shown) });
      }
    }
  }
  return [...byHost].map(([host, list]) => ({
    name: host,
    domains: [host],
    routes: list
      .toSorted((a, b) => b.prefix.length - a.prefix.length)
      .map(({ prefix, to }) => ({ match: { prefix }, ...to })),
  }));
}

function listener(gateway: Gateway, shown: Shown): object {
  const manager = {
    "@type": `${TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: gateway.metadata.name,
    route_config: {
      virtual_hosts: virtualHosts(gateway, shown),
      response_headers_to_add: [
        {
          header: {
            key: "x-conformance-test-served-endpoint",
            value: "%DYNAMIC_METADATA(envoy.lb:x-gateway-destination-endpoint-served)%",
          },
        },
      ],
    },
    http_filters: [
      {
        name: "envoy.filters.http.lua",
        typed_config: { "@type": `${TYPE}.filters.http.lua.v3.Lua`, default_source_code: { inline_string: SUBSET } },
      },
      {
        name: "envoy.filters.http.ext_proc",
        // But for routes that name a picker.
        disabled: true,
        typed_config: {
          "@type": `${TYPE}.filters.http.ext_proc.v3.ExternalProcessor`,
          grpc_service: { envoy_grpc: { cluster_name: "none" } },
          message_timeout: "5s",
          // In full duplex Envoy fails without a picker, whatever is allowed.
          processing_mode: {
            request_header_mode: "SEND",
            request_body_mode: "BUFFERED",
            response_header_mode: "SEND",
            response_body_mode: "NONE",
          },
          metadata_options: {
            forwarding_namespaces: { untyped: ["envoy.lb", "envoy.lb.subset_hint"] },
            receiving_namespaces: { untyped: ["envoy.lb"] },
          },
        },
      },
      {
        name: "envoy.filters.http.router",
        typed_config: { "@type": `${TYPE}.filters.http.router.v3.Router` },
      },
    ],
  };
  const [{ port } = { port: 80 }] = gateway.spec.listeners;
  return {
    "@type": "type.googleapis.com/envoy.config.listener.v3.Listener",
    name: gateway.metadata.name,
    address: { socket_address: { address: addressOf(gateway, shown.gateways), port_value: port } },
    filter_chains: [{ filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }] }],
  };
}

/** The two files that Envoy reads anew as they change. */
export function envoyFiles(shown: Shown): Readonly<Record<string, string>> {
  const clusters = shown.pools.flatMap((pool) => [poolCluster(pool, shown), pickerCluster(pool, shown)]);
  return {
    "clusters.json": JSON.stringify({ resources: clusters }),
    "listeners.json": JSON.stringify({ resources: shown.gateways.map((gateway) => listener(gateway, shown)) }),
  };
}
