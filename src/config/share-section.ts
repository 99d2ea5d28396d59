import * as z from "zod";
import { MILLIS_PER_DAY, environmentName, millis } from "./schema-value.ts";

/** host:port of a node. */
const node = () =>
  z
    .string()
    .regex(/^[^\s/@]{1,255}$/)
    .meta({ expected: "a node such as 10.0.0.7:6379" });

/** redis://host:6379/0 without a password, which a variable holds. */
const redisUrl = () =>
  z
    .string()
    .refine(isRedisUrl, { message: "not a Redis URL without a password" })
    .meta({ expected: "a URL such as redis://10.0.0.7:6379 or rediss://..., its password in share.passwordEnv" });

/** Several gateways in front of the same endpoints, which know what the others do. */
export const share = z
  .strictObject({
    url: redisUrl().optional().describe("Redis or Valkey that the gateways share through; unset: nothing is shared."),
    cluster: z.array(node()).max(64).default([]).describe("Nodes of a Redis Cluster, in place of the URL."),
    sentinels: z.array(node()).max(64).default([]).describe("Sentinels that know the server, in place of the URL."),
    sentinelName: z.string().min(1).max(256).default("mymaster").describe("The server's name with the Sentinels."),
    usernameEnv: environmentName().optional().describe("Variable that holds the user's name for Redis."),
    passwordEnv: environmentName().optional().describe("Variable that holds the password for Redis."),
    tls: z.boolean().default(false).describe("TLS to a cluster or to what Sentinels name; a rediss:// URL has it."),
    key: z
      .string()
      .regex(/^[A-Za-z0-9:_.-]{1,128}$/)
      .default("gnomon")
      .describe("Begins the keys in Redis; fleets that share nothing have different ones."),
    replica: z
      .string()
      .regex(/^[A-Za-z0-9_.-]{1,128}$/)
      .optional()
      .describe("Name of this gateway among the others; by default the host's name, the process and a random part."),
    flushMillis: millis(0, 10_000).default(5).describe("What happens waits so long for more to be sent with it."),
    leaseMillis: millis(100, MILLIS_PER_DAY)
      .default(3000)
      .describe("A gateway of which nothing came for so long is forgotten, with all that it had in flight."),
    snapshotMillis: millis(100, MILLIS_PER_DAY)
      .default(5000)
      .describe("Time between two lists of all that is in flight, which set right what was missed."),
    timeoutMillis: millis(10, 60_000)
      .default(1000)
      .describe("Without an answer of Redis for so long, this gateway goes on by its own view."),
    entriesMax: z
      .int()
      .min(100)
      .max(100_000_000)
      .default(65_536)
      .describe("Reports that Redis keeps, about; a gateway that starts learns of prompts from them."),
    warmMillis: millis(0, MILLIS_PER_DAY).default(600_000).describe("Age up to which they are read at a start."),
    limitsKeptMillis: millis(0, 732 * MILLIS_PER_DAY)
      .default(2 * MILLIS_PER_DAY)
      .describe(
        "What limits have counted outlives all gateways for so long, twice the longest window at best; 0: it ends with the last one.",
      ),
    policyMillis: millis(0, MILLIS_PER_DAY)
      .default(0)
      .describe(
        "Time between two looks at the key ':policy', which holds a policy as admin calls take it; 0 for none.",
      ),
  })
  .refine(({ url, cluster, sentinels }) => Number(url !== undefined) + placed(cluster) + placed(sentinels) <= 1, {
    path: ["url"],
    message: "url, cluster or sentinels, and not two of them",
  });

function placed(nodes: readonly string[]): number {
  return nodes.length > 0 ? 1 : 0;
}

function isRedisUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return (url?.protocol === "redis:" || url?.protocol === "rediss:") && url.hostname !== "" && url.password === "";
}
