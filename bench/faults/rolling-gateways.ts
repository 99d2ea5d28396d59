import { ask, type Got } from "./client.ts";
import { startEngines } from "./faulty-fleet.ts";
import { type GatewayUnderTest, startGateway } from "./gateway-under-test.ts";
import type { Row } from "./report.ts";

const STREAMS = 64;
const REPLICAS = 3;
const LOOK_MILLIS = 100;
/** Longer than it takes a balancer to find out, as a pod's are. */
const NOTICE_MILLIS = 1_000;

/**
 * Every gateway replica is asked to end and replaced by a new one, one after another, under load without a pause. Clients
 * do what a Kubernetes Service does for them: they go where a readiness probe was answered last, and where a connection is
 * refused, to the next one.
 */
export async function rollingGatewaysPart(seed: number): Promise<Row[]> {
  const engines = await startEngines(4, { slots: 64, tokens: 20, tokenMillis: 20 }, seed);
  const start = (): Promise<GatewayUnderTest> =>
    startGateway(
      engines.map(({ port }) => port),
      { listen: { port: 0, drainNoticeMillis: NOTICE_MILLIS }, log: { level: "error" } },
    );
  const replicas = await Promise.all(Array.from({ length: REPLICAS }, start));
  let ready: GatewayUnderTest[] = [...replicas];
  const probe = setInterval(
    () => void readyOf(replicas).then((found) => (ready = found.length > 0 ? found : ready)),
    LOOK_MILLIS,
  );
  const load = { isOver: false };
  const counts = { whole: 0, other: 0, refused: 0 };
  const others = new Map<string, number>();
  let asked = 0;
  const served = async (): Promise<Got> => {
    for (let tries = 0; ; tries++) {
      const at = ready[asked++ % ready.length]!;
      const got = await ask(at.port);
      if (got.reason !== "connection" || got.hasBytes || tries === REPLICAS) return got;
      counts.refused++;
    }
  };
  const ended = Promise.all(
    Array.from({ length: STREAMS }, async () => {
      while (!load.isOver) {
        const { isWhole, status, reason, hasBytes } = await served();
        if (isWhole) counts.whole++;
        else {
          counts.other++;
          const key = `${status} ${reason}${hasBytes ? ", cut" : ""}`;
          others.set(key, (others.get(key) ?? 0) + 1);
        }
      }
    }),
  );
  await pause(1_000);
  const exits: number[] = [];
  for (let i = 0; i < REPLICAS; i++) {
    const before = replicas[i]!;
    const next = await start();
    replicas.push(next);
    exits.push(await before.stop());
    replicas[i] = next;
    replicas.pop();
    await pause(500);
  }
  load.isOver = true;
  await ended;
  clearInterval(probe);
  await pause(500);
  let left = 0;
  for (const gateway of replicas) {
    left += (await gateway.metric("gnomon_open_charges")) + (await gateway.metric("gnomon_requests_in_flight"));
    exits.push(await gateway.stop());
  }
  await Promise.all(engines.map((engine) => engine.killed()));
  const found = [...others].map(([key, count]) => `${count} times ${key}`).join(", ");
  return [
    {
      what: `every gateway of ${REPLICAS} replaced under ${STREAMS} streams`,
      figure: `${counts.whole} whole, ${counts.other} not ${found}; ${counts.refused} connections tried elsewhere`,
      holds: counts.other === 0,
    },
    {
      what: "left in the ledgers, exit codes",
      figure: `${left}; ${exits.join(", ")}`,
      holds: left === 0 && exits.every((exit) => exit === 0),
    },
  ];
}

/** Those whose probe is answered. */
async function readyOf(replicas: readonly GatewayUnderTest[]): Promise<GatewayUnderTest[]> {
  const found = await Promise.all(
    replicas.map(async (one) => {
      const answer = await fetch(`http://127.0.0.1:${one.port}/readyz`).catch(() => undefined);
      await answer?.body?.cancel();
      return answer?.ok === true ? [one] : [];
    }),
  );
  return found.flat();
}

function pause(millis: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, millis));
}
