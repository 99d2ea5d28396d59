import * as z from "zod";
import { GRPC_TLS, grpcPort, isKeyPair, isOneWay, KEY_PAIR, ONE_WAY } from "./grpc-tls.ts";
import { MIB, MILLIS_PER_DAY, bytes, headers, millis, origin } from "./schema-value.ts";

const envoy = z
  .strictObject({
    port: grpcPort().describe(
      "Port on which an Envoy shows what passes it (external processing in observability mode, gRPC), in place of tap.router; picker.* has the bounds of its connections and calls. Unset: none.",
    ),
    ...GRPC_TLS,
  })
  .refine(isKeyPair, KEY_PAIR)
  .refine(isOneWay, ONE_WAY);

/** Beside another router, which decides: what it decided is learned and recorded. */
export const tap = z.strictObject({
  router: origin()
    .optional()
    .describe(
      "Origin of another router, to which every request goes as it came; where that sends it is learned and recorded. Unset: this gateway decides.",
    ),
  envoy: envoy.prefault({}).describe("Beside an Envoy, in which another router decides."),
  name: z.string().min(1).max(64).default("another router").describe("Its name in traces, for example sglang-router."),
  servedHeaders: headers()
    .default([])
    .describe("Headers of its answers that name the engine by address, beside those that are known of other routers."),
  metricsMillis: millis(0, 60_000)
    .default(250)
    .describe(
      "Time between two looks at the engines' counters, while it is not known where some request went and no header names its engine; 0 looks at headers alone.",
    ),
  holdMillis: millis(100, MILLIS_PER_DAY)
    .default(60_000)
    .describe("Time that a request waits to be recorded until it is known where it went."),
  holdBytesMax: bytes()
    .default(64 * MIB)
    .describe(
      "Bytes that waiting requests, and what came behind them, may take; beyond it the oldest waits no longer.",
    ),
  hashMillisMax: millis(1, 600_000)
    .default(1_000)
    .describe("Time that a request waits for its tokens; then it goes on, and is recorded, without them."),
});

/** Whether another router decides, before or in an Envoy beside this gateway. */
export function otherDecides({ router, envoy: { port } }: z.output<typeof tap>): boolean {
  return router !== undefined || port !== undefined;
}
