import * as z from "zod";
import { engineFacts } from "./endpoint-section.ts";
import { DATA_PARALLEL_MAX, MILLIS_PER_DAY, environmentName, millis } from "./schema-value.ts";

const SOURCES_MAX = 64;
/** Groups that have both kinds, in version v1alpha2. */
const WORKLOAD_GROUPS = ["llm-d.ai", "inference.networking.x-k8s.io"] as const;

/** What is followed in a cluster, and how its pods become endpoints. */
const followed = {
  service: z.string().min(1).max(253).optional().describe("Service whose endpoint slices name the pods."),
  selector: z.string().min(1).max(1024).optional().describe("Label selector of the pods, instead of a service."),
  pool: z
    .string()
    .min(1)
    .max(253)
    .optional()
    .describe("InferencePool whose selector and target ports name the pods, instead of a service."),
  poolVersion: z.enum(["v1", "v1alpha2"]).default("v1").describe("Version of the InferencePool's API."),
  port: z
    .int()
    .min(1)
    .max(65_535)
    .optional()
    .describe("Port of the engine in each pod; unset: the port of the slice or the container, else 8000."),
  portName: z
    .string()
    .min(1)
    .max(63)
    .optional()
    .describe("Name of that port, where there are several; unset: the one called http."),
  scheme: z
    .enum(["http", "https"])
    .optional()
    .describe("How engines are spoken to; unset: https where the port's appProtocol is https, else http."),
  modelLabel: z
    .string()
    .min(1)
    .max(317)
    .optional()
    .describe(
      "Label whose value is the model that a pod serves; unset, and for pods without it, what its engine lists.",
    ),
  engine: engineFacts.engine.describe(
    "Engine of the pods, of config/engines by name or an engine file: its step times are where predicted-latency begins. A pod's label gnomon/engine, with a name of config/engines, wins.",
  ),
  apiKeyEnv: environmentName().optional().describe("Variable that holds the bearer token sent to the pods."),
  dataParallelRanks: z
    .int()
    .min(1)
    .max(DATA_PARALLEL_MAX)
    .default(1)
    .describe("Data-parallel ranks in each pod; above 1 each is its own endpoint."),
};

const source = z
  .strictObject({
    namespace: z.string().min(1).max(253).optional().describe("Namespace of this source; unset: discovery.namespace."),
    ...followed,
    labels: z.record(z.string(), z.string()).default({}).describe("Labels added to every pod's own."),
  })
  .refine((value) => waysOf(value) === 1, {
    path: ["service"],
    message: "a service, a selector or a pool, and only one of them",
  });

const dnsName = z
  .strictObject({
    name: z
      .string()
      .regex(/^(?=.{1,253}$)[\w-]+(\.[\w-]+)*\.?$/)
      .meta({ expected: "a name of the DNS such as vllm.infer.svc.cluster.local or _http._tcp.vllm.example" })
      .describe("Name that is looked up: each of its addresses is an engine."),
    type: z
      .enum(["A", "AAAA", "SRV"])
      .default("A")
      .describe(
        "Records that are asked for. SRV: hosts and ports of its most preferred priority, each host looked up.",
      ),
    port: z.int().min(1).max(65_535).default(8000).describe("Port of the engines; SRV records have their own."),
    scheme: z.enum(["http", "https"]).default("http").describe("How engines are spoken to."),
    ...engineFacts,
  })
  .refine((value) => value.type !== "SRV" || !/^\d+(\.\d+){3}$/.test(value.name), {
    path: ["name"],
    message: "a name and no address",
  });

const dnsServer = z
  .string()
  .regex(/^(?:\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?|\[[0-9a-fA-F:]+\](?::\d{1,5})?|[0-9a-fA-F:]*:[0-9a-fA-F:]*)$/)
  .meta({ expected: "an address such as 10.0.0.10, 127.0.0.1:8600 or [::1]:53" });

/** Names of the DNS, and a file, beside the list and the cluster. */
const beside = {
  file: z
    .string()
    .min(1)
    .optional()
    .describe(
      "YAML or JSON file with a list `endpoints` like the one above, `cordoned: true` where one is to get nothing new; followed.",
    ),
  fileWatchMillis: millis(20, MILLIS_PER_DAY)
    .default(1000)
    .describe("Time between two looks at it; a change counts once two looks agree."),
  dns: z.array(dnsName).max(SOURCES_MAX).default([]).describe("Names whose addresses are engines, looked up again."),
  dnsServers: z.array(dnsServer).max(16).default([]).describe("Name servers; none: those of the system."),
  dnsMillisMin: millis(100, MILLIS_PER_DAY)
    .default(5000)
    .describe("Shortest time between two look-ups of a name; between this and the longest, its records' time to live."),
  dnsMillisMax: millis(100, MILLIS_PER_DAY)
    .default(30_000)
    .describe("Longest such time, also of SRV records, whose time to live is not known. All differ by up to a tenth."),
  dnsTimeoutMillis: millis(10, 600_000).default(2000).describe("Bound on one question to a name server."),
};

export const discovery = z
  .strictObject({
    kind: z
      .enum(["static", "kubernetes"])
      .default("static")
      .describe("static: the list above. kubernetes: pods of services or selectors. DNS and a file come on top."),
    namespace: z.string().min(1).max(253).default("default").describe("Namespace to watch."),
    ...followed,
    workloads: z
      .enum(WORKLOAD_GROUPS)
      .optional()
      .describe(
        "API group of the InferenceObjectives and InferenceModelRewrites of the pool, where they are to be followed: " +
          "priorities of requests that name an objective, models in place of those that requests name; unset: neither.",
      ),
    addressFamily: z
      .enum(["ipv4", "ipv6"])
      .default("ipv4")
      .describe("Address that a pod with one of each is reached by."),
    sources: z
      .array(source)
      .max(SOURCES_MAX)
      .default([])
      .describe("Several services or selectors, of several namespaces; an endpoint of two is described by the first."),
    ...beside,
  })
  .refine((value) => value.dnsMillisMin <= value.dnsMillisMax, {
    path: ["dnsMillisMin"],
    message: "at most dnsMillisMax",
  })
  .refine(({ pool, workloads }) => workloads === undefined || pool !== undefined, {
    path: ["workloads"],
    message: "only together with discovery.pool",
  })
  .refine(namesOneWay, {
    path: ["service"],
    message: "a service, a selector, a pool or sources, and only one of them, which kind kubernetes needs",
  });

interface Ways {
  readonly service?: unknown;
  readonly selector?: unknown;
  readonly pool?: unknown;
}

function waysOf({ service, selector, pool }: Ways): number {
  return [service, selector, pool].filter((way) => way !== undefined).length;
}

function namesOneWay(value: Ways & { readonly kind: string; readonly sources: readonly unknown[] }): boolean {
  return value.kind === "static" || waysOf(value) + (value.sources.length > 0 ? 1 : 0) === 1;
}
