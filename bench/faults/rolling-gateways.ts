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
/** Streams of one engine last a third of a second, those of the other one to three: they end before, in and after the notice. */
const ENGINES = [
  { slots: 64, tokens: 20, tokenMillis: 15 },
  { slots: 64, tokens: 40, tokenMillis: 50 },
];
/** Between a client's answer and its next request: mostly nothing, at times so long that its connection is idle. */
const PAUSES_MILLIS = [0, 0, 0, 1, 10, 100, 1_000, 1_500];

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
export async function rollingGatewaysPart(seed: number, load: RollingLoad): Promise<Row[]> {
  const fleets = await Promise.all(ENGINES.map((shape, i) => startEngines(1, shape, seed + i)));
  const ports = fleets.flat().map(({ port }) => port);
  const listen = { port: 0, drainNoticeMillis: NOTICE_MILLIS, warmUpMillis: 0 };
  const start = (): Promise<GatewayUnderTest> => startGateway(ports, { listen, log: { level: "error" } });
  const balancer = await TcpBalancer.start();
  const replicas = await Promise.all(Array.from({ length: REPLICAS }, start));
  for (const { port } of replicas) balancer.add(port);
  await Promise.all(replicas.map(({ port }) => balancer.takes(port)));

  const counts = { sent: 0, whole: 0, replaced: 0 };
  const lost = new Map<string, number>();
  const isOver = (): boolean => counts.sent >= load.requests && counts.replaced >= REPLICAS;
  const drive = async (who: string, one: (i: number) => Promise<Got>): Promise<void> => {
    for (let i = 0; !isOver(); i++) {
      counts.sent++;
      const { isWhole, status, reason, hasBytes } = await one(i);
      const how = `${who}: ${status} ${reason}${hasBytes ? ", cut" : ""}`;
      if (isWhole) counts.whole++;
      else lost.set(how, (lost.get(how) ?? 0) + 1);
      await pause(PAUSES_MILLIS[(seed + 7 * i + counts.sent) % PAUSES_MILLIS.length]!);
    }
  };
  const agents = Array.from({ length: load.clients }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  const lasting = Array.from({ length: load.lasting }, () => new LastingClient(balancer.port));
  const ended = Promise.all([
    ...agents.map((agent) => drive("keeps its connection", (i) => ask(balancer.port, { agent, stream: i % 4 !== 3 }))),
    ...lasting.map((client) => drive("ignores connection: close", () => client.ask())),
  ]);
  const exits: number[] = [];
  for (let i = 0; !isOver(); i = (i + 1) % REPLICAS) {
    const [before, next] = [replicas[i]!, await start()];
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
  for (const gateway of replicas) {
    left += (await gateway.metric("gnomon_open_charges")) + (await gateway.metric("gnomon_requests_in_flight"));
    exits.push(await gateway.stop());
  }
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

function pause(millis: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, millis));
}
