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
      .describe("Prefix of the keys in Redis; separate fleets need different ones."),
    replica: z
      .string()
      .regex(/^[A-Za-z0-9_.-]{1,128}$/)
      .optional()
      .describe("Name of this gateway among the others; by default the host's name, the process and a random part."),
    flushMillis: millis(0, 10_000)
      .default(5)
      .describe("Time for which reports are collected before they are sent together."),
    leaseMillis: millis(100, MILLIS_PER_DAY)
      .default(3000)
      .describe("A gateway that sent nothing for this long is forgotten, with everything it had in flight."),
    snapshotMillis: millis(100, MILLIS_PER_DAY)
      .default(5000)
      .describe("Time between two complete lists of what is in flight, which correct what was missed."),
    timeoutMillis: millis(10, 60_000)
      .default(1000)
      .describe("Without an answer from Redis for this long, the gateway routes by its own view."),
    entriesMax: z
      .int()
      .min(100)
      .max(100_000_000)
      .default(65_536)
      .describe("Approximate number of reports that Redis keeps; a gateway that starts learns prompts from them."),
    warmMillis: millis(0, MILLIS_PER_DAY)
      .default(600_000)
      .describe("Age up to which they are read when a gateway starts."),
    limitsKeptMillis: millis(0, 732 * MILLIS_PER_DAY)
      .default(2 * MILLIS_PER_DAY)
      .describe(
        "How long the counts of limits are kept when no gateway runs, ideally twice the longest window; 0: they end with the last gateway.",
      ),
    policyMillis: millis(0, MILLIS_PER_DAY)
      .default(0)
      .describe(
        "Time between two checks of the key ':policy', which holds a policy in the form of the admin API; 0 for none.",
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
