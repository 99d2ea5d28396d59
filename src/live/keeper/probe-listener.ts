import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { HealthChecker } from "./health-checker.ts";
import type { ProbeResult } from "#core/endpoint/hang-judge.ts";

/** Notified of what every probe of a server came to, for each endpoint behind it. */
export interface ProbeListener {
  probed(endpoint: EndpointId, result: ProbeResult): void;
}

/** How servers are probed beside their metrics pages. */
export interface ProbeContext {
  readonly probes?: ProbeListener;
  /** Asked where the metrics page does not answer in time; /health where it is left out. */
  readonly healthPath?: string;
  /** Makes the active health checks of a server; there are none where it is left out. */
  readonly checkerOf?: CheckerOf;
}

/** `judged` and `wanted` as of HealthCheckerOptions. */
export type CheckerOf = (
  server: { readonly url: string; readonly apiKey: string | undefined },
  judged: (healthy: boolean, detail: string) => void,
  wanted: () => boolean,
) => HealthChecker;
