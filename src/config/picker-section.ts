import * as z from "zod";
import { GRPC_TLS, grpcPort, isKeyPair, isOneWay, KEY_PAIR, ONE_WAY } from "./grpc-tls.ts";
import { MILLIS_PER_DAY, millis } from "./schema-value.ts";

const FALLBACKS_MAX = 16;

export const picker = z
  .strictObject({
    port: grpcPort().describe(
      "Port for Envoy's external processing (gRPC), as an endpoint picker behind a Gateway; unset: none.",
    ),
    healthPort: grpcPort().describe(
      "Port on which gRPC health alone is served in plain text, for probes where the other has TLS.",
    ),
    fallbacks: z
      .int()
      .min(0)
      .max(FALLBACKS_MAX)
      .default(0)
      .describe(
        "Endpoints named after the chosen one, which a proxy that retries tries in order. 0 where its cluster takes one address only (Envoy's ORIGINAL_DST answers 503 to a list); 1 or more for Envoy's override_host policy.",
      ),
    ...GRPC_TLS,
    connectionAgeMillisMax: millis(0, MILLIS_PER_DAY)
      .default(0)
      .describe(
        "Age, give or take a tenth, at which a proxy is asked to make its connection anew, so that it finds replicas that joined; 0: never.",
      ),
    connectionGraceMillis: millis(0, MILLIS_PER_DAY)
      .default(600_000)
      .describe(
        "Time for the calls that are open on a connection of that age, each as long as its response; then they are cut.",
      ),
    pingMillis: millis(0, MILLIS_PER_DAY)
      .default(60_000)
      .describe("Silence of a connection after which its proxy is asked whether it is there (HTTP/2 ping); 0: never."),
    pingAnswerMillisMax: millis(1, MILLIS_PER_DAY)
      .default(20_000)
      .describe("Time limit for the answer; then the connection is cut."),
    callIdleMillisMax: millis(1, MILLIS_PER_DAY)
      .default(3_600_000)
      .describe(
        "Time without a message of the proxy after which its call is ended, at the latest after twice that. Where it shows no bodies of responses, a call is silent as long as the response takes.",
      ),
  })
  .refine(isKeyPair, KEY_PAIR)
  .refine(isOneWay, ONE_WAY);
