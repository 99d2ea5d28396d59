import { ask } from "./client.ts";
import { startEngines } from "./faulty-fleet.ts";
import { startGateway } from "./gateway-under-test.ts";
import type { Row } from "./report.ts";

const STREAMS = 64;

/** Every endpoint drains, ends and is started anew on its port, one after another, under load without a pause. */
export async function rollingPart(seed: number): Promise<Row[]> {
  const engines = await startEngines(4, { slots: 64, tokens: 20, tokenMillis: 20 }, seed);
  const gateway = await startGateway(
    engines.map(({ port }) => port),
    {
      scrape: { intervalMillis: 250, retryMillis: 100, retryMillisMax: 500, lostAfterMillis: 1_000 },
      log: { level: "error" },
    },
  );
  const load = { isOver: false };
  const counts = { whole: 0, other: 0 };
  const others = new Map<string, number>();
  const ended = Promise.all(
    Array.from({ length: STREAMS }, async () => {
      while (!load.isOver) {
        const { isWhole, status, reason, hasBytes } = await ask(gateway.port);
        if (isWhole) counts.whole++;
        else {
          counts.other++;
          const key = `${status} ${reason}${hasBytes ? ", cut" : ""}`;
          others.set(key, (others.get(key) ?? 0) + 1);
        }
      }
    }),
  );
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  for (const engine of engines) {
    await engine.drained();
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await engine.start();
    await new Promise((resolve) => setTimeout(resolve, 2_000));
  }
  load.isOver = true;
  await ended;
  await new Promise((resolve) => setTimeout(resolve, 500));
  const left = (await gateway.metric("gnomon_open_charges")) + (await gateway.metric("gnomon_requests_in_flight"));
  const retries = await gateway.metric("gnomon_retries_total");
  const exit = await gateway.stop();
  await Promise.all(engines.map((engine) => engine.killed()));
  const found = [...others].map(([key, count]) => `${count} times ${key}`).join(", ");
  return [
    {
      what: "every endpoint of four replaced under 64 streams",
      figure: `${counts.whole} whole, ${counts.other} not ${found}; ${retries} retries`,
      holds: counts.other === 0,
    },
    { what: "left in the ledger, exit code", figure: `${left}, ${exit}`, holds: left === 0 && exit === 0 },
  ];
}
