import * as z from "zod";
import { INFERENCE_PERF, inferencePerfClients } from "./inference-perf.ts";
import { strict } from "./strict-object.ts";

/**
 * BLIS's WorkloadSpec, versions 1 and 2, which differ in names of classes: the keys that this reader understands;
 * others are refused by name.
 */

const nonnegative = z.number().nonnegative().max(1e15);
const positive = z.number().positive().max(1e15);

const DISTRIBUTION = strict({
  type: z.enum(["gaussian", "exponential", "pareto_lognormal", "lognormal", "empirical", "constant"], {
    error: "expected gaussian, exponential, pareto_lognormal, lognormal, empirical or constant",
  }),
  /** For `empirical` weights by length, else the distribution's own parameters. */
  params: z.record(z.string(), z.number()).default({}),
});
export type BlisDistribution = z.output<typeof DISTRIBUTION>;

const ARRIVAL = strict({
  process: z.enum(["poisson", "gamma", "weibull", "constant"], {
    error: "expected poisson, gamma, weibull or constant",
  }),
  cv: positive.optional(),
  shape: positive.optional(),
  scale: positive.optional(),
});
export type BlisArrival = z.output<typeof ARRIVAL>;

const WINDOW = strict({
  start_us: nonnegative,
  end_us: positive,
  /** Requests per second in this window, in place of the client's share. */
  trace_rate: nonnegative.optional(),
});

const CLIENT = strict({
  id: z.string().default(""),
  tenant_id: z.string().default(""),
  slo_class: z.string().default(""),
  model: z.string().default(""),
  rate_fraction: nonnegative.default(1),
  concurrency: z.int().nonnegative().max(1_000_000).default(0),
  think_time_us: nonnegative.default(0),
  arrival: ARRIVAL.prefault({ process: "poisson" }),
  input_distribution: DISTRIBUTION,
  output_distribution: DISTRIBUTION,
  prefix_group: z.string().default(""),
  prefix_length: z.int().nonnegative().max(10_000_000).default(50),
  streaming: z.boolean().default(true),
  closed_loop: z.boolean().optional(),
  /** Microseconds; 0 for never, 300 s where it is left out. */
  timeout: nonnegative.default(300_000_000),
  slo_target_us: nonnegative.optional(),
  /** Between the client and the router, where a simulation here has one latency for all: it is left out. */
  network: strict({ rtt_ms: nonnegative.optional(), bandwidth_mbps: nonnegative.optional() }).optional(),
  lifecycle: strict({ windows: z.array(WINDOW).max(10_000) }).optional(),
  reasoning: strict({
    reason_ratio_distribution: DISTRIBUTION.optional(),
    multi_turn: strict({
      max_rounds: z.int().positive().max(10_000),
      think_time_us: nonnegative.default(0),
      context_growth: z.enum(["", "accumulate"]).default(""),
      single_session: z.boolean().default(false),
    }).optional(),
  }).optional(),
});
export type BlisClient = z.output<typeof CLIENT>;

const VERSIONS: ReadonlySet<unknown> = new Set(["1", 1, "2", 2]);
/** Classes of version 1 that version 2 names otherwise. */
const CLASSES_OF_1: Readonly<Record<string, string>> = { realtime: "critical", interactive: "standard" };

const millis = z.number().positive().max(1e9).optional();

const SPEC = strict({
  version: z
    .unknown()
    .refine((version) => VERSIONS.has(version), { error: 'expected version: "1" or "2"' })
    .transform((version) => Number(version)),
  seed: z.int().nonnegative().optional(),
  category: z.enum(["language", "reasoning", "multimodal", ""]).default(""),
  aggregate_rate: nonnegative,
  num_requests: z.int().nonnegative().max(1e9).default(0),
  horizon: nonnegative.default(0),
  clients: z.array(CLIENT).min(1).max(100_000),
  goodput_slo_targets: z.record(z.string(), strict({ ttft_ms: millis, itl_ms: millis, e2e_ms: millis })).default({}),
});

/** With `inference_perf` in place of clients and their rate; what it stands for is checked as if it had been written. */
const EXPANDED = z
  .looseObject({ clients: z.unknown().optional(), inference_perf: INFERENCE_PERF })
  .refine(({ clients }) => clients === undefined, {
    path: ["clients"],
    error: "expected no clients beside inference_perf, which stands for them",
  })
  .transform(({ inference_perf, ...rest }) => ({
    aggregate_rate: 0,
    ...rest,
    ...inferencePerfClients(inference_perf),
  }));

const hasInferencePerf = (value: unknown): boolean =>
  typeof value === "object" && value !== null && "inference_perf" in value;

export const BLIS_SPEC = z
  .unknown()
  .transform((value, context) => {
    if (!hasInferencePerf(value)) return value;
    const expanded = EXPANDED.safeParse(value);
    if (expanded.success) return expanded.data;
    context.issues.push(...expanded.error.issues.map((issue) => ({ ...issue, input: value }) as never));
    return z.NEVER;
  })
  .pipe(SPEC)
  .refine((spec) => spec.num_requests > 0 || spec.horizon > 0, {
    path: ["num_requests"],
    error: "expected num_requests or horizon above 0, or the workload would never end",
  })
  .transform((spec) =>
    spec.version === 2
      ? spec
      : {
          ...spec,
          clients: spec.clients.map((one) => ({ ...one, slo_class: CLASSES_OF_1[one.slo_class] ?? one.slo_class })),
        },
  );
export type BlisSpec = z.output<typeof BLIS_SPEC>;
