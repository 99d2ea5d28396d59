import { createHash } from "node:crypto";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { atRate, ask, type Got } from "./client.ts";
import { startEngines } from "./faulty-fleet.ts";
import { type GatewayUnderTest, startGateway } from "./gateway-under-test.ts";
import type { Row } from "./report.ts";
import { quantile } from "#core/base/quantile.ts";

const SHARES = { large: 2, "small-1": 1, "small-2": 1 } as const;
type Tenant = keyof typeof SHARES;
const TENANTS = Object.keys(SHARES) as Tenant[];

/** Engines with room for 32 streams of 400 ms: 80 requests a second. Capacity, and three times as much of three tenants. */
export async function overloadPart(seed: number, seconds: number): Promise<Row[]> {
  const shape = { slots: 16, tokens: 20, tokenMillis: 20 };
  const engines = await startEngines(2, shape, seed);
  const capacity = (2 * shape.slots * 1000) / (shape.tokens * shape.tokenMillis);
  const gateway = await startGateway(
    engines.map(({ port }) => port),
    {
      admission: {
        saturation: { requestsMax: shape.slots, waitingMax: 1_000 },
        queue: {
          enabled: true,
          expectedMillisMax: 180,
          ttlMillis: 5_000,
          inputWeight: 1,
          outputWeight: 1,
          shares: tenantIds(),
        },
      },
      clients: { keysFile: keysFile() },
      log: { level: "error" },
    },
  );
  const run = async (perSecond: number): Promise<Map<Tenant, Got[]>> => {
    const got = new Map(TENANTS.map((tenant): [Tenant, Got[]] => [tenant, []]));
    await atRate(perSecond, seconds, async (i) => {
      const tenant = TENANTS[i % TENANTS.length]!;
      got.get(tenant)!.push(await ask(gateway.port, { headers: { "x-api-key": keyOf(tenant) } }));
    });
    return got;
  };
  const times = (all: Map<Tenant, Got[]>, status: number) =>
    [...all.values()]
      .flat()
      .filter((got) => got.status === status)
      .map(({ millis }) => millis);
  await run(0.5 * capacity);
  const atCapacity = await run(0.95 * capacity);
  const probes: number[] = [];
  const probed = atRate(20, seconds, async () => void probes.push(await healthMillis(gateway.port)));
  const over = await run(3 * capacity);
  await probed;
  const [usual, accepted, refused] = [times(atCapacity, 200), times(over, 200), times(over, 429)];
  const whole = [...over.values()].flat().filter((got) => got.status === 200 && !got.isWhole).length;
  const other = [...over.values()].flat().filter(({ status }) => status !== 200 && status !== 429).length;
  const ratio = quantile(accepted, 0.99) / quantile(usual, 0.99);
  const served = (tenant: Tenant): number => over.get(tenant)!.filter(({ status }) => status === 200).length;
  const small = (served("small-1") + served("small-2")) / 2;
  const rows: Row[] = [
    {
      what: `at ${(0.95 * capacity).toFixed(0)} requests a second`,
      figure: `${usual.length} served, p99 ${ms(usual, 0.99)}`,
      holds: true,
    },
    {
      what: `at ${(3 * capacity).toFixed(0)}: accepted`,
      figure: `${accepted.length} served (${(accepted.length / seconds).toFixed(0)} a second), p50 ${ms(accepted, 0.5)}, p99 ${ms(accepted, 0.99)}, ${ratio.toFixed(2)} times that at capacity`,
      holds: ratio <= 1.5,
    },
    {
      what: "refused",
      figure: `${refused.length}, of which ${atOnce(over)}; /healthz meanwhile p50 ${ms(probes, 0.5)}, p99 ${ms(probes, 0.99)}`,
      holds: atOnceMillis(over) <= 5 + quantile(probes, 0.99),
    },
    {
      what: "tenants' shares 2 : 1 : 1, each asking for a third",
      figure: `served ${TENANTS.map(served).join(" : ")}, that is ${(served("large") / small).toFixed(2)} : ${(served("small-1") / small).toFixed(2)} : ${(served("small-2") / small).toFixed(2)}`,
      holds: Math.abs(served("large") / small - 2) < 0.2 && Math.abs(served("small-1") / small - 1) < 0.1,
    },
    { what: "cut, or other answers", figure: `${whole}, ${other}`, holds: whole + other === 0 },
    {
      what: "left in ledger and queue",
      figure: `${await left(gateway)}`,
      holds: (await left(gateway)) === 0,
    },
  ];
  await gateway.stop();
  await Promise.all(engines.map((engine) => engine.killed()));
  return rows;
}

async function left({ metric }: Pick<GatewayUnderTest, "metric">): Promise<number> {
  return (
    (await metric("gnomon_open_charges")) +
    (await metric("gnomon_queue_requests")) +
    (await metric("gnomon_requests_in_flight"))
  );
}

/** What the machine itself takes for an answer, at that time. */
async function healthMillis(port: number): Promise<number> {
  const since = performance.now();
  await (await fetch(`http://127.0.0.1:${port}/healthz`)).arrayBuffer();
  return performance.now() - since;
}

/** Those that never waited. */
function atOnceMillis(all: Map<Tenant, Got[]>): number {
  return quantile(
    [...all.values()]
      .flat()
      .filter(({ reason }) => reason === "queue-full")
      .map(({ millis }) => millis),
    0.99,
  );
}

function atOnce(all: Map<Tenant, Got[]>): string {
  const count = [...all.values()].flat().filter(({ reason }) => reason === "queue-full").length;
  return `${count} at once, p99 ${atOnceMillis(all).toFixed(1)} ms`;
}

function ms(values: readonly number[], share: number): string {
  return `${quantile(values, share).toFixed(1)} ms`;
}

function keyOf(tenant: Tenant): string {
  return `key-of-${tenant}-in-the-fault-suite`;
}

function tenantIds(): Record<string, number> {
  return { ...SHARES };
}
function keysFile(): string {
  const file = join(mkdtempSync(join(tmpdir(), "gnomon-keys-")), "keys.yaml");
  const keys = TENANTS.map((tenant) => {
    const sha256 = createHash("sha256").update(keyOf(tenant)).digest("hex");
    return `  - { name: of-${tenant}, sha256: ${sha256}, tenant: ${tenant} }`;
  });
  writeFileSync(file, `keys:\n${keys.join("\n")}\n`);
  return file;
}
