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
    .describe("Name of that port if there are several; unset: the one called http."),
  scheme: z
    .enum(["http", "https"])
    .optional()
    .describe("Protocol towards engines; unset: https if the port's appProtocol is https, else http."),
  modelLabel: z
    .string()
    .min(1)
    .max(317)
    .optional()
    .describe(
      "Label whose value is the model that a pod serves; unset, or for pods without it: the models that its engine lists.",
    ),
  engine: engineFacts.engine.describe(
    "Engine of the pods, by a name in config/engines or an engine file: predicted-latency starts from its step times. A pod's label gnomon/engine, with a name in config/engines, takes precedence.",
  ),
  apiKeyEnv: environmentName().optional().describe("Variable that holds the bearer token sent to the pods."),
  dataParallelRanks: z
    .int()
    .min(1)
    .max(DATA_PARALLEL_MAX)
    .default(1)
    .describe("Data-parallel ranks in each pod; above 1 each rank is an endpoint of its own."),
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
      "YAML or JSON file with a list `endpoints` like the one above, and `cordoned: true` for one that is to get no new requests; changes are followed.",
    ),
  fileWatchMillis: millis(20, MILLIS_PER_DAY)
    .default(1000)
    .describe("Time between two checks of the file; a change takes effect once two checks agree."),
  dns: z
    .array(dnsName)
    .max(SOURCES_MAX)
    .default([])
    .describe("DNS names whose addresses are engines, looked up repeatedly."),
  dnsServers: z.array(dnsServer).max(16).default([]).describe("Name servers to ask; none: those of the system."),
  dnsMillisMin: millis(100, MILLIS_PER_DAY)
    .default(5000)
    .describe(
      "Shortest time between two look-ups of a name; between this and the longest, the records' time to live decides.",
    ),
  dnsMillisMax: millis(100, MILLIS_PER_DAY)
    .default(30_000)
    .describe(
      "Longest such time, also used for SRV records, whose time to live is not known. Each time varies by up to a tenth.",
    ),
  dnsTimeoutMillis: millis(10, 600_000).default(2000).describe("Time limit of one DNS query."),
};

export const discovery = z
  .strictObject({
    kind: z
      .enum(["static", "kubernetes"])
      .default("static")
      .describe(
        "static: the list above. kubernetes: pods of services or selectors. DNS names and a file are added to either.",
      ),
    namespace: z.string().min(1).max(253).default("default").describe("Namespace to watch."),
    ...followed,
    workloads: z
      .enum(WORKLOAD_GROUPS)
      .optional()
      .describe(
        "API group of the pool's InferenceObjectives (priorities of requests that name an objective) and " +
          "InferenceModelRewrites (models in place of those that requests name), to follow them; unset: neither is followed.",
      ),
    addressFamily: z
      .enum(["ipv4", "ipv6"])
      .default("ipv4")
      .describe(
        "Family of the address that a pod with both is reached by; one of the other counts only where it has no other.",
      ),
    sources: z
      .array(source)
      .max(SOURCES_MAX)
      .default([])
      .describe(
        "Several services or selectors, in several namespaces; an endpoint found by two is described by the first.",
      ),
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
