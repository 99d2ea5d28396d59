/**
 * What spans cost (`tracing.url`): CPU time per request of a gateway without them, twice, of one that has them for a
 * hundredth of its requests, and of one that has them for all, in turn and several times over. What the two without differ
 * in is chance. The collector takes all and is in this process; engines are stubs that answer at once.
 *
 *     npx node bench/spans.ts [--rounds 5] [--millis 2000] [--body-bytes 2048]
 */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { endAll, kept, message } from "./children.ts";
import { cpuMicros } from "./gateway-process.ts";
import type { LoadOrder, LoadReport } from "./http-load.ts";
import { median } from "./median.ts";
import { type Gateway, startGateway } from "./replicas/processes.ts";

const { values: flags } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    millis: { type: "string", default: "2000" },
    "body-bytes": { type: "string", default: "2048" },
  },
});
const ENDPOINTS = 8;
const CONNECTIONS = 32;

let received = 0;
const collector = createServer((incoming, response) => {
  incoming.resume().on("end", () => {
    received++;
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
}).listen(0, "127.0.0.1");
await once(collector, "listening");
const url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}/v1/traces`;
const stub = child("stub-upstream.ts", String(ENDPOINTS));
const { ports } = (await message(stub)) as { ports: readonly number[] };
const engines = { urls: ports.map((port) => `http://127.0.0.1:${port}`), end: async () => {} };
const spans = (share: number) => [`tracing.url=${url}`, `tracing.sampleShare=${share}`];
const cases: readonly (readonly [name: string, gateway: Gateway, micros: number[]])[] = [
  ["none", await startGateway(engines, ""), []],
  ["none, once more", await startGateway(engines, ""), []],
  ["for 1 % of requests", await startGateway(engines, "", spans(0.01)), []],
  ["for all", await startGateway(engines, "", spans(1)), []],
];
// The first round is for the compilers.
for (let round = 0; round <= Number(flags.rounds); round++) {
  for (const [, gateway, micros] of round % 2 === 0 ? cases : cases.toReversed()) {
    const before = cpuMicros([gateway.child.pid!]);
    const { answers, failures } = await load(gateway);
    if (failures > 0) throw new Error(`${failures} requests failed`);
    if (round > 0) micros.push((cpuMicros([gateway.child.pid!]) - before) / answers);
  }
}
const [, , without] = cases[0]!;
console.log("| spans | CPU us a request | to none, of each round |\n|---|---|---|");
for (const [name, , micros] of cases) {
  const ratio = median(micros.map((one, round) => one / without[round]!));
  console.log(`| ${name} | ${median(micros).toFixed(0)} | ${ratio.toFixed(3)} |`);
}
console.log(`\n${received} batches at the collector`);
endAll();
process.exit(0);

function child(file: string, ...argv: readonly string[]): ChildProcess {
  return kept(fork(join(import.meta.dirname, file), argv, { stdio: ["ignore", "inherit", "inherit", "ipc"] }));
}

async function load({ url: at }: Gateway): Promise<LoadReport> {
  const sender = child("http-load.ts");
  await message(sender);
  const order: LoadOrder = {
    port: Number(new URL(at).port),
    bodyBytes: Number(flags["body-bytes"]),
    stream: false,
    connections: CONNECTIONS,
    millis: Number(flags.millis),
  };
  const answered = message(sender);
  sender.send(order);
  const report = (await answered) as LoadReport;
  sender.kill("SIGKILL");
  return report;
}
