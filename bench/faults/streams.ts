import { ask, atRate, inParallel, quantile } from "./client.ts";
import { startEngines } from "./faulty-fleet.ts";
import { residentBytes, startGateway } from "./gateway-under-test.ts";
import type { Row } from "./report.ts";

const TOKEN_MILLIS = 2_000;
const ENGINES = 4;
const QUICK = JSON.stringify({ model: "tiny", messages: [{ role: "user", content: "quick" }], max_tokens: 1 });
const QUICK_PER_SECOND = 50;
const QUICK_SECONDS = 10;

/** Many streams at once, each with a token every two seconds, held while small requests come as before. */
export async function streamsPart(seed: number, count: number, holdSeconds: number): Promise<Row[]> {
  const rampSeconds = Math.ceil(count / 800);
  const tokens = Math.ceil(((holdSeconds + rampSeconds) * 1000) / TOKEN_MILLIS);
  const engines = await startEngines(ENGINES, { slots: count, tokens, tokenMillis: TOKEN_MILLIS }, seed);
  const gateway = await startGateway(
    engines.map(({ port }) => port),
    { limits: { requestsInFlightMax: 2 * count }, log: { level: "error" } },
  );
  const quick = async (): Promise<number[]> => {
    const millis: number[] = [];
    await atRate(QUICK_PER_SECOND, QUICK_SECONDS, async () => {
      const got = await ask(gateway.port, { stream: false, body: QUICK });
      millis.push(got.status === 200 ? got.millis : Infinity);
    });
    return millis;
  };
  await inParallel(2_000, 20, async () => void (await ask(gateway.port, { stream: false, body: QUICK })));
  const before = await quick();
  const emptyBytes = residentBytes(gateway.pid);
  let whole = 0;
  const all = atRate(count / rampSeconds, rampSeconds, async () => {
    if ((await ask(gateway.port)).isWhole) whole++;
  });
  await new Promise((resolve) => setTimeout(resolve, (rampSeconds + 5) * 1000));
  const held = await gateway.metric("gnomon_requests_in_flight");
  const fullBytes = residentBytes(gateway.pid);
  const during = await quick();
  await all;
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const left = (await gateway.metric("gnomon_open_charges")) + (await gateway.metric("gnomon_requests_in_flight"));
  await gateway.stop();
  await Promise.all(engines.map((engine) => engine.killed()));
  const figures = (millis: readonly number[]) =>
    `p50 ${quantile(millis, 0.5).toFixed(1)} ms, p99 ${quantile(millis, 0.99).toFixed(1)} ms`;
  return [
    { what: `streams held at once for ${holdSeconds} s`, figure: `${held} of ${count}`, holds: held >= count },
    {
      what: "resident bytes of the gateway per stream",
      figure: `${Math.round((fullBytes - emptyBytes) / count)}`,
      holds: true,
    },
    { what: "small requests before", figure: figures(before), holds: !before.includes(Infinity) },
    { what: "small requests meanwhile", figure: figures(during), holds: !during.includes(Infinity) },
    { what: "streams that came whole", figure: `${whole} of ${count}`, holds: whole === count },
    { what: "left in the ledger", figure: String(left), holds: left === 0 },
  ];
}
