import { NO_LATENCY, type SimulationOptions } from "#sim/setting/simulation-options.ts";

/** A simulated cluster without what the benches that share this do not ask about: it runs to its end, unchecked. */
export const PLAIN_CLUSTER = {
  prefixes: { kind: "approximate" },
  latency: NO_LATENCY,
  horizonMicros: Infinity,
  over: "answered",
  tokenGaps: false,
  check: false,
} as const satisfies Partial<SimulationOptions>;
