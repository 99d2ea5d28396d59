import { ask, inParallel } from "./client.ts";
import { FAULTS, type Fault } from "./fault.ts";
import { type EngineShape, type FaultyEngine, startEngines } from "./faulty-fleet.ts";
import { type GatewayUnderTest, startGateway } from "./gateway-under-test.ts";
import type { Row } from "./report.ts";

/** Faults that end by themselves. */
const QUICK_FAULTS = FAULTS.filter((fault) => fault !== "hang");

async function underTest(
  seed: number,
  shape: EngineShape,
  config: object = {},
): Promise<[FaultyEngine[], GatewayUnderTest]> {
  const engines = await startEngines(4, shape, seed);
  const limits = {
    idleMillisMax: 3_000,
    firstByteMillisMax: 20_000,
    attemptsMax: 4,
    retryRatio: 10,
    retryBurst: 100_000,
  };
  const gateway = await startGateway(
    engines.map(({ port }) => port),
    {
      limits,
      scrape: { intervalMillis: 250, retryMillis: 100, retryMillisMax: 500 },
      log: { level: "error" },
      ...config,
    },
  );
  return [engines, gateway];
}

/** Some engine of four fails in each way under 200 streams. */
export async function enginesPart(seed: number): Promise<Row[]> {
  const [engines, gateway] = await underTest(seed, { slots: 256, tokens: 20, tokenMillis: 10 });
  const rows: Row[] = [];
  const first = engines[0]!;
  const load = async (label: string, disturb: () => void, restore: () => Promise<void> | void): Promise<void> => {
    const counts = { whole: 0, cut: 0, failed: 0 };
    const timer = setTimeout(disturb, 500);
    await inParallel(1_000, 200, async () => {
      const got = await ask(gateway.port);
      if (got.isWhole) counts.whole++;
      else if (got.hasBytes && got.status === 200) counts.cut++;
      else counts.failed++;
    });
    clearTimeout(timer);
    await restore();
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    const { whole, cut, failed } = counts;
    rows.push({
      what: `one engine of four: ${label}`,
      figure: `${whole} whole, ${cut} cut after bytes, ${failed} failed without a byte`,
      holds: failed === 0,
    });
  };
  await load(
    "killed, later started again",
    () => first.signal("SIGKILL"),
    async () => void (await first.start()),
  );
  await load(
    "hung (stopped), later continued",
    () => first.signal("SIGSTOP"),
    () => first.signal("SIGCONT"),
  );
  for (const fault of QUICK_FAULTS) {
    await load(
      `every answer ${fault}`,
      () => first.order({ faults: { [fault]: 1 } }),
      () => first.order({ faults: {} }),
    );
  }
  return [...rows, await exitRow(gateway, engines)];
}

/** Each request may meet any fault. */
export async function mixedPart(seed: number, mixed: number): Promise<Row[]> {
  const [engines, gateway] = await underTest(
    seed,
    { slots: 256, tokens: 4, tokenMillis: 2 },
    { listen: { port: 0, warmUpMillis: 0 } },
  );
  const faults = Object.fromEntries(QUICK_FAULTS.map((fault): [Fault, number] => [fault, 0.03]));
  for (const engine of engines) engine.order({ faults });
  const statuses = new Map<string, number>();
  await inParallel(mixed, 200, async (i) => {
    const { status, reason } = await ask(gateway.port, { stream: i % 2 === 0 });
    const key = status === 200 ? "200" : `${status} ${reason}`;
    statuses.set(key, (statuses.get(key) ?? 0) + 1);
  });
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  const left = {
    charges: await gateway.metric("gnomon_open_charges"),
    requests: await gateway.metric("gnomon_requests_in_flight"),
  };
  const prefill = await gateway.metric("gnomon_endpoint_prefill_tokens_queued");
  const stray = await gateway.metric("gnomon_stray_inputs_total");
  const defects = await gateway.metric("gnomon_internal_errors_total");
  const isClean = left.charges + left.requests + prefill + stray + defects === 0;
  const answers = [...statuses]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([status, count]) => `${status}: ${count}`)
    .join(", ");
  const row = {
    what: `${mixed} requests, a quarter of attempts with some fault`,
    figure: `${answers}; left: ${left.charges} charges, ${left.requests} requests, ${prefill} tokens; ${stray} stray inputs, ${defects} defects`,
    holds: isClean,
  };
  return [row, await exitRow(gateway, engines)];
}

async function exitRow(gateway: GatewayUnderTest, engines: readonly FaultyEngine[]): Promise<Row> {
  const exit = await gateway.stop();
  await Promise.all(engines.map((engine) => engine.killed()));
  return { what: "the gateway's exit code", figure: String(exit), holds: exit === 0 };
}
