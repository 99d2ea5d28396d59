import { Agent } from "node:http";
import { ask, type Got } from "./client.ts";
import { startEngines } from "./faulty-fleet.ts";
import { type GatewayUnderTest, startGateway } from "./gateway-under-test.ts";
import { LastingClient } from "./lasting-client.ts";
import type { Row } from "./report.ts";
import { TcpBalancer } from "./tcp-balancer.ts";

const REPLICAS = 2;
/** Longer than it takes the balancer to learn of it, as a pod's are. */
const NOTICE_MILLIS = 700;
/**
 * Streams of one engine last a third of a second, those of the other one to three: they end before, in and after the notice.
 * Of few pieces, since what is looked at are connections.
 */
const ENGINES = [
  { slots: 64, tokens: 4, tokenMillis: 75 },
  { slots: 64, tokens: 8, tokenMillis: 250 },
];
/**
 * Between a client's answers and its next requests: mostly nothing, and after every fourth one so long that its connection is
 * idle. A gateway that leaves waits for that of clients that take no notice.
 */
const PAUSES_MILLIS = [0, 10, 0, 1_000, 1, 0, 100, 1_500];

/** What is replaced. */
export type Replica = Pick<GatewayUnderTest, "port" | "metric" | "stop">;

export type ListenSettings = Readonly<Record<"port" | "drainNoticeMillis" | "warmUpMillis", number>>;

export interface RollingLoad {
  /** Requests in all; more are sent where not every gateway was replaced yet. */
  readonly requests: number;
  /** Clients that keep their connection and end it as they are asked to. */
  readonly clients: number;
  /** Clients that take no notice of that. */
  readonly lasting: number;
}

/**
 * Gateways are asked to end and replaced, one after another, again and again, behind a balancer of connections, while
 * clients send request after request over connections that they keep. Nothing is sent twice.
 */
export async function rollingGatewaysPart(
  seed: number,
  load: RollingLoad,
  startOne: (ports: readonly number[], listen: ListenSettings) => Promise<Replica> = asProcess,
): Promise<Row[]> {
  const fleets = await Promise.all(ENGINES.map((shape, i) => startEngines(1, shape, seed + i)));
  const ports = fleets.flat().map(({ port }) => port);
  const listen = { port: 0, drainNoticeMillis: NOTICE_MILLIS, warmUpMillis: 0 };
  const start = (): Promise<Replica> => startOne(ports, listen);
  const balancer = await TcpBalancer.start();
  // Their first successors too, so that what is replaced meets no load of a start.
  const startAll = (): Promise<Replica[]> => Promise.all(Array.from({ length: REPLICAS }, start));
  const [replicas, successors] = await Promise.all([startAll(), startAll()]);
  for (const { port } of replicas) balancer.add(port);
  await Promise.all(replicas.map(({ port }) => balancer.takes(port)));

  const counts = { sent: 0, whole: 0, replaced: 0 };
  const lost = new Map<string, number>();
  const isOver = (): boolean => counts.sent >= load.requests && counts.replaced >= REPLICAS;
  const drive = async (who: string, client: number, one: (i: number) => Promise<Got>): Promise<void> => {
    for (let i = seed + client; !isOver(); i++) {
      counts.sent++;
      const { isWhole, status, reason, hasBytes } = await one(i);
      const how = `${who}: ${status} ${reason}${hasBytes ? ", cut" : ""}`;
      if (isWhole) counts.whole++;
      else lost.set(how, (lost.get(how) ?? 0) + 1);
      await pause(PAUSES_MILLIS[i % PAUSES_MILLIS.length]!);
    }
  };
  const agents = Array.from({ length: load.clients }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  const lasting = Array.from({ length: load.lasting }, () => new LastingClient(balancer.port));
  const ended = Promise.all([
    ...agents.map((agent, client) =>
      drive("keeps its connection", client, (i) => ask(balancer.port, { agent, stream: i % 5 > 0 })),
    ),
    ...lasting.map((client, i) => drive("ignores connection: close", i, () => client.ask())),
  ]);
  const exits: number[] = [];
  for (let i = 0; !isOver(); i = (i + 1) % REPLICAS) {
    const [before, next] = [replicas[i]!, successors.shift() ?? (await start())];
    replicas[i] = next;
    balancer.add(next.port);
    await balancer.takes(next.port);
    exits.push(await before.stop());
    balancer.remove(before.port);
    counts.replaced++;
  }
  await ended;

  for (const agent of agents) agent.destroy();
  for (const client of lasting) client.end();
  await pause(500);
  let left = 0;
  for (const gateway of replicas)
    left += (await gateway.metric("gnomon_open_charges")) + (await gateway.metric("gnomon_requests_in_flight"));
  exits.push(...(await Promise.all(replicas.map((gateway) => gateway.stop()))));
  balancer.stop();
  await Promise.all(fleets.flat().map((engine) => engine.killed()));
  const notWhole = [...lost].map(([how, count]) => `${count} ${how}`).join("; ");
  return [
    {
      what: `${counts.replaced} gateways of ${REPLICAS} replaced behind a TCP balancer under ${load.clients + load.lasting} clients that keep their connections`,
      figure: `${counts.whole} of ${counts.sent} whole${notWhole && `; lost: ${notWhole}`}; ${balancer.refused} connections refused`,
      holds: counts.whole === counts.sent && balancer.refused === 0,
    },
    {
      what: "left in the ledgers, exit codes",
      figure: `${left}; ${[...new Set(exits)].join(", ")}`,
      holds: left === 0 && exits.every((exit) => exit === 0),
    },
  ];
}

export function asProcess(ports: readonly number[], listen: ListenSettings): Promise<Replica> {
  return startGateway(ports, { listen, log: { level: "error" } });
}

function pause(millis: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, millis));
}
