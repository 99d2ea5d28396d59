import { createRequire } from "node:module";
import type { ConnectionOptions } from "node:tls";
import type * as IoRedis from "ioredis";

/** Where Redis (or Valkey) is: one server, a cluster's nodes, or Sentinels that know the master. */
export interface RedisPlace {
  /** redis://host:6379/0, or rediss:// for TLS. */
  readonly url?: string | undefined;
  readonly cluster: readonly string[];
  readonly sentinels: readonly string[];
  readonly sentinelName: string;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
  /** Cluster and Sentinel by TLS; a URL states it itself. */
  readonly tls: boolean;
  readonly timeoutMillis: number;
}

export type RedisClient = IoRedis.Redis | IoRedis.Cluster;

const RETRY_MILLIS = 50;
const RETRY_MILLIS_MAX = 1_000;

/** A connection that is made when `connect` is called and made again whenever it breaks; what is sent meanwhile fails. */
export function redisClient(place: RedisPlace, commandMillis: number): RedisClient {
  // Loaded only now: a gateway that shares nothing does without it.
  const { Cluster, Redis } = createRequire(import.meta.url)("ioredis") as typeof IoRedis;
  const { url, cluster, sentinels, sentinelName: name, username, password, tls, timeoutMillis } = place;
  const options: IoRedis.RedisOptions = {
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: timeoutMillis,
    commandTimeout: commandMillis,
    retryStrategy: pauseMillis,
    // Its address may be another server's by now, as of a Service behind which a replica took over.
    reconnectOnError: (error) => error.message.startsWith("READONLY "),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(tls && { tls: {} satisfies ConnectionOptions }),
  };
  if (cluster.length > 0) {
    return new Cluster(cluster.map(hostOf), {
      lazyConnect: true,
      enableOfflineQueue: false,
      clusterRetryStrategy: pauseMillis,
      slotsRefreshTimeout: timeoutMillis,
      redisOptions: options,
    });
  }
  if (sentinels.length > 0) {
    return new Redis({ ...options, sentinels: sentinels.map(hostOf), name, sentinelRetryStrategy: pauseMillis });
  }
  return url === undefined ? new Redis(options) : new Redis(url, options);
}

/** Of a place, for people: no user and no password. */
export function placeText({ url, cluster, sentinels, sentinelName }: RedisPlace): string {
  if (cluster.length > 0) return `Redis cluster ${cluster.join(", ")}`;
  if (sentinels.length > 0) return `Redis ${sentinelName} by Sentinels ${sentinels.join(", ")}`;
  return `Redis at ${url === undefined ? "127.0.0.1:6379" : new URL(url).host}`;
}

/** Longer each time, and never the same for two replicas. */
function pauseMillis(times: number): number {
  return Math.min(RETRY_MILLIS * times, RETRY_MILLIS_MAX) * (0.5 + Math.random());
}

const PORT_DEFAULT = 6379;

function hostOf(text: string): { readonly host: string; readonly port: number } {
  const [, host = text, port] = /^\[?(.*?)\]?(?::(\d+))?$/.exec(text) ?? [];
  return { host, port: port === undefined ? PORT_DEFAULT : Number(port) };
}

export const NO_ANSWER = "no answer in time";

/** Why a command failed, in words that do not need the client's documentation. */
export function failureText(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  if (text.startsWith("Command timed out")) return NO_ANSWER;
  return /max retries per request|isn't writeable|Connection is closed/.test(text) ? "no connection" : text;
}
