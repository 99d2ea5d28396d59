import type { WorkloadRequest } from "../workload-request.ts";

/**
 * The workload with arrivals `rate` times as fast. Think times are people's and tools' own and stay; so do lengths and
 * content.
 */
export async function* scaleWorkload(
  requests: AsyncIterable<WorkloadRequest>,
  rate: number,
): AsyncGenerator<WorkloadRequest> {
  for await (const request of requests) yield { ...request, arrivalMicros: Math.round(request.arrivalMicros / rate) };
}
