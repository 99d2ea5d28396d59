import { readFileSync } from "node:fs";
import { ask, atRate, inParallel } from "./client.ts";
import { startEngines } from "./faulty-fleet.ts";
import { type GatewayUnderTest, residentBytes, startGateway } from "./gateway-under-test.ts";
import type { Row } from "./report.ts";
import { quantile } from "#core/base/quantile.ts";

const TOKEN_MILLIS = 2_000;
const ENGINES = 4;
const QUICK = JSON.stringify({ model: "tiny", messages: [{ role: "user", content: "quick" }], max_tokens: 1 });
const QUICK_PER_SECOND = 50;
const QUICK_SECONDS = 10;

/** Files of a process beside a stream's two sockets: engines' kept connections, small requests, its own. */
const OTHER_FILES = 1_000;

/** As many gateways as the files that a process may have open ask for. */
function gatewaysFor(count: number): number {
  const filesMax = Number(
    /Max open files\s+\d+\s+(\d+)/.exec(readFileSync("/proc/self/limits", "utf8"))?.[1] ?? Infinity,
  );
  return Math.ceil((2 * count) / Math.max(1, filesMax - OTHER_FILES));
}

async function sumOf(gateways: readonly GatewayUnderTest[], name: string): Promise<number> {
  const values = await Promise.all(gateways.map((gateway) => gateway.metric(name)));
  return values.reduce((sum, value) => sum + value, 0);
}

/** Many streams at once, each with a token every two seconds, held while small requests come as before. */
export async function streamsPart(seed: number, count: number, holdSeconds: number): Promise<Row[]> {
  const rampSeconds = Math.ceil(count / 800);
  const tokens = Math.ceil(((holdSeconds + rampSeconds) * 1000) / TOKEN_MILLIS);
  const engines = await startEngines(ENGINES, { slots: count, tokens, tokenMillis: TOKEN_MILLIS }, seed);
  const gateways = await Promise.all(
    Array.from({ length: gatewaysFor(count) }, () =>
      startGateway(
        engines.map(({ port }) => port),
        { limits: { requestsInFlightMax: 2 * count }, log: { level: "error" } },
      ),
    ),
  );
  let asked = 0;
  const port = (): number => gateways[asked++ % gateways.length]!.port;
  const bytes = (): number => gateways.reduce((sum, { pid }) => sum + residentBytes(pid), 0);
  const quick = async (): Promise<number[]> => {
    const millis: number[] = [];
    await atRate(QUICK_PER_SECOND, QUICK_SECONDS, async () => {
      const got = await ask(port(), { stream: false, body: QUICK });
      millis.push(got.status === 200 ? got.millis : Infinity);
    });
    return millis;
  };
  await inParallel(2_000, 20, async () => void (await ask(port(), { stream: false, body: QUICK })));
  const before = await quick();
  const emptyBytes = bytes();
  let whole = 0;
  const all = atRate(count / rampSeconds, rampSeconds, async () => {
    if ((await ask(port())).isWhole) whole++;
  });
  await new Promise((resolve) => setTimeout(resolve, (rampSeconds + 5) * 1000));
  const held = await sumOf(gateways, "gnomon_requests_in_flight");
  const fullBytes = bytes();
  const during = await quick();
  await all;
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const left = (await sumOf(gateways, "gnomon_open_charges")) + (await sumOf(gateways, "gnomon_requests_in_flight"));
  await Promise.all(gateways.map((gateway) => gateway.stop()));
  await Promise.all(engines.map((engine) => engine.killed()));
  const figures = (millis: readonly number[]) =>
    `p50 ${quantile(millis, 0.5).toFixed(1)} ms, p99 ${quantile(millis, 0.99).toFixed(1)} ms`;
  return [
    {
      what: `streams held at once for ${holdSeconds} s by ${gateways.length} gateway processes`,
      figure: `${held} of ${count}`,
      holds: held >= count,
    },
    {
      what: "resident bytes of the gateways per stream",
      figure: `${Math.round((fullBytes - emptyBytes) / count)}`,
      holds: true,
    },
    { what: "small requests before", figure: figures(before), holds: !before.includes(Infinity) },
    { what: "small requests meanwhile", figure: figures(during), holds: !during.includes(Infinity) },
    { what: "streams that came whole", figure: `${whole} of ${count}`, holds: whole === count },
    { what: "left in the ledger", figure: String(left), holds: left === 0 },
  ];
}
