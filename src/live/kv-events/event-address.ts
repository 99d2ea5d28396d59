import type { EndpointEntry } from "../endpoints/endpoint-directory.ts";

/** Where one engine publishes its KV events, by ZMQ addresses. */
export interface EventAddress {
  readonly publisher: string;
  /** Where missed messages can be asked for; undefined where there is no such place. */
  readonly replay: string | undefined;
  /** The engine connects to that address on this machine, and the gateway is to be there. */
  readonly binds: boolean;
  /** Messages of other topics are left out; "" takes all. */
  readonly topic: string;
}

/** Ports that an operator names for engines that cannot be asked. */
export interface EventPorts {
  readonly port: number | undefined;
  readonly replayPort: number | undefined;
  readonly topic: string;
}

/** Labels that name the same for one endpoint. */
const PORT_LABEL = "gnomon/kv-events-port";
const REPLAY_PORT_LABEL = "gnomon/kv-events-replay-port";
const PORT_MAX = 65_535;

/**
 * The address by an endpoint's labels, else by configuration; undefined where neither names a port. Rank r of a server
 * publishes at the port plus r, as vLLM does. A label that is no port counts as none.
 */
export function configuredAddress(
  { url, dataParallelRank }: Pick<EndpointEntry, "url" | "dataParallelRank">,
  labels: Readonly<Record<string, string>>,
  ports: EventPorts,
): EventAddress | undefined {
  const port = portOf(labels[PORT_LABEL]) ?? ports.port;
  if (port === undefined) return undefined;
  const replayPort = portOf(labels[REPLAY_PORT_LABEL]) ?? ports.replayPort;
  const rank = dataParallelRank ?? 0;
  return {
    publisher: at(url, port + rank),
    binds: false,
    replay: replayPort === undefined ? undefined : at(url, replayPort + rank),
    topic: ports.topic,
  };
}

/**
 * The address in a server's answer to GET /kv_event_sources (`{"0": {"endpoint": "tcp://*:5557", ...}}`, by rank): its
 * ports at the server's own host. An engine whose address names no wildcard connects to it instead of listening: that is
 * followed where it is on this machine. Undefined where there is nothing to follow.
 */
export function announcedAddress(
  answer: unknown,
  { url, dataParallelRank }: Pick<EndpointEntry, "url" | "dataParallelRank">,
): EventAddress | undefined {
  const source = fieldOf(answer, String(dataParallelRank ?? 0));
  if (fieldOf(source, "enable_kv_cache_events") !== true || fieldOf(source, "publisher") !== "zmq") return undefined;
  const address = fieldOf(source, "endpoint");
  const port = portIn(address);
  if (port === undefined) return undefined;
  const binds = typeof address === "string" && !/[*]|::/.test(address);
  if (binds && !LOOPBACK.test(address)) return undefined;
  const replayPort = portIn(fieldOf(source, "replay_endpoint"));
  const topic = fieldOf(source, "topic");
  return {
    publisher: binds ? address : at(url, port),
    binds,
    replay: replayPort === undefined ? undefined : at(url, replayPort),
    topic: typeof topic === "string" ? topic : "",
  };
}

const LOOPBACK = /^tcp:\/\/(?:127\.\d+\.\d+\.\d+|localhost):\d+$/;

function portIn(address: unknown): number | undefined {
  const port = typeof address === "string" ? /^tcp:\/\/.*:(\d{1,5})$/.exec(address)?.[1] : undefined;
  return portOf(port);
}

function portOf(text: string | undefined): number | undefined {
  const port = text !== undefined && /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return port >= 1 && port <= PORT_MAX ? port : undefined;
}

function at(url: string, port: number): string {
  return `tcp://${new URL(url).hostname}:${port}`;
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name)
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;
}
