import * as z from "zod";
import { MIB, MILLIS_PER_DAY, millis } from "./schema-value.ts";

/** Replay, calibration and what-if on a thread beside the gateway. */
export const shadow = z.strictObject({
  enabled: z.boolean().default(false).describe("Run replay and what-if on a thread beside the gateway."),
  profiles: z
    .array(z.string().min(1))
    .max(32)
    .default(["round-robin", "llm-d", "lmetric"])
    .describe("Profiles that it evaluates, by name or path."),
  engine: z
    .string()
    .min(1)
    .default("emulated-default")
    .describe("Engine model to start with, ideally written by `gnomon calibrate`; a name in config/engines or a path."),
  calibrate: z
    .enum(["continuous", "off"])
    .default("continuous")
    .describe(
      "Whether the engine model follows the traffic: it is fitted to the latest requests, and replaced if the new fit predicts no worse.",
    ),
  stepTimes: z
    .boolean()
    .default(false)
    .describe(
      "Give the router the fitted step times of endpoints whose engine is not configured: predicted-latency starts from them, and again after each fit that differs by a twentieth.",
    ),
  calibrateEvery: z.int().min(1).max(1000).default(1).describe("Evaluations from one fit to the next."),
  calibrateRequestsMax: z
    .int()
    .min(100)
    .max(20_000)
    .default(1000)
    .describe("Latest requests of the window that a fit uses; 1,000 take 1 to 4 s of a core."),
  cpuShareMax: z
    .number()
    .min(0.01)
    .max(1)
    .default(0.1)
    .describe("Largest share of one core for fits and evaluations; replaying recorded inputs is additional."),
  intervalMillis: millis(1000, MILLIS_PER_DAY).default(60_000).describe("Time between two evaluations."),
  predictMillis: millis(100, MILLIS_PER_DAY)
    .default(2_000)
    .describe(
      "Time between two predictions of the requests that a rollout compares, which have a CPU share of their own.",
    ),
  windowRequests: z
    .int()
    .min(10)
    .max(1_000_000)
    .default(2000)
    .describe("Latest requests that an evaluation uses; predictions of a rollout use as many more as they need."),
  requestsMin: z.int().min(1).max(1_000_000).default(50).describe("Fewest requests for an evaluation."),
  why: z
    .boolean()
    .default(true)
    .describe("Explain, after each evaluation, why answers were slow and cached tokens lost: GET /gnomon/why."),
  bufferBytesMax: z
    .int()
    .min(65_536)
    .max(1024 * MIB)
    .default(16 * MIB)
    .describe("Bytes of records on their way to the shadow; above that whole records are dropped and counted."),
  heapMegabytesMax: z
    .int()
    .min(64)
    .max(65_536)
    .default(512)
    .describe("Heap of its thread; a quarter of it bounds the requests that predictions of a rollout keep."),
});
