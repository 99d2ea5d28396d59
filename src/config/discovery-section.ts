import * as z from "zod";
import { DATA_PARALLEL_MAX, environmentName } from "./schema-value.ts";

const SOURCES_MAX = 64;

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

export const discovery = z
  .strictObject({
    kind: z
      .enum(["static", "kubernetes"])
      .default("static")
      .describe("static: the list above. kubernetes: pods of services or selectors."),
    namespace: z.string().min(1).max(253).default("default").describe("Namespace to watch."),
    ...followed,
    addressFamily: z
      .enum(["ipv4", "ipv6"])
      .default("ipv4")
      .describe("Address that a pod with one of each is reached by."),
    sources: z
      .array(source)
      .max(SOURCES_MAX)
      .default([])
      .describe("Several services or selectors, of several namespaces; an endpoint of two is described by the first."),
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
