/**
 * What `gnomon tap` learns of other routers' decisions: real routers in front of emulated engines, each behind a tap. How
 * many decisions have a place in the trace, by how it was learned, and how many of these are right; the truth is where each
 * engine's own connections saw the request.
 *
 *     npx node bench/tap.ts [--peers FOLDER] [--envoy FILE --picker FILE] [--requests 300] [--clients 8] [--every 250]
 *
 * --peers is a Python virtual environment with sglang-router, vllm-router or smg; --envoy and --picker name the programs of
 * Envoy and llm-d's picker, behind which a tap is in front of Envoy, or beside it: *shown* by a filter of the same Envoy, before
 * the picker's or behind it. nginx runs where it is installed. Chats of 8 clients, each a conversation whose turns follow
 * one another; half of them stream. `--every` is the time between two looks at the engines' counters.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { Agent, request } from "undici";
import { randomFor } from "#core/base/random.ts";
import { TraceReader } from "#trace/reader.ts";
import { endAll } from "./children.ts";
import { startGateway } from "./gateway-process.ts";
import { startNginx } from "./nginx-process.ts";
import { startPeers } from "./peer-process.ts";
import { freePort } from "./free-port.ts";
import { type Beside, startEnvoyWithPicker } from "./tap/envoy-picker.ts";
import { MarkedEngines } from "./tap/marked-engines.ts";

const ENGINES = 4;
const SURE = 0.99;

const { values } = parseArgs({
  options: {
    peers: { type: "string" },
    envoy: { type: "string" },
    picker: { type: "string" },
    only: { type: "string", default: "" },
    requests: { type: "string", default: "300" },
    clients: { type: "string", default: "8" },
    every: { type: "string", default: "250" },
    "time-scale": { type: "string", default: "1" },
  },
});
const requests = Number(values.requests);
const clients = Number(values.clients);
const scratch = mkdtempSync(join(tmpdir(), "gnomon-bench-tap-"));
const agent = new Agent({ connections: clients });

/** A router that runs, or the way to start it. */
interface Peer {
  readonly name: string;
  /** Where its Envoy shows a tap what passes, which stands beside it then, and not in front. */
  readonly shownAt?: number;
  readonly start: (
    engines: readonly string[],
  ) => Promise<{ readonly port: number; readonly end: () => void } | undefined>;
}

try {
  await main();
} finally {
  endAll();
  rmSync(scratch, { recursive: true, force: true });
}
process.exit();

async function main(): Promise<void> {
  const heads = ["by header", "by metrics", "not known", "right", "claimed", "sure", "right of sure"];
  console.log(
    `${ENGINES} emulated engines, ${requests} chats of ${clients} clients, counters every ${values.every} ms; % of requests, right and claimed % of those with a place`,
  );
  console.log(["router".padEnd(22), ...heads.map((head) => head.padStart(14))].join(""));
  for (const peer of (await peers()).filter(({ name }) => name.includes(values.only))) await measure(peer);
}

async function peers(): Promise<Peer[]> {
  const found: Peer[] = [];
  const { peers: folder, envoy, picker } = values;
  for (const name of folder === undefined ? [] : ["smg", "sglang", "sglang rr", "vllm"]) {
    const start: Peer["start"] = async (engines) => {
      const [one] = await startPeers(engines, resolve(folder!), [name]);
      return one && { port: one.port, end: () => one.process.kill("SIGKILL") };
    };
    found.push({ name, start });
  }
  if (envoy !== undefined && picker !== undefined) {
    const behind = (name: string, beside: Beside): void => {
      const start: Peer["start"] = async (engines) => {
        const folder = mkdtempSync(join(scratch, "llm-d-"));
        const programs = { envoy: resolve(envoy), picker: resolve(picker) };
        return { port: await startEnvoyWithPicker(programs, engines, folder, beside), end: () => {} };
      };
      found.push({ name, start, ...(beside.shown && { shownAt: beside.shown.port }) });
    };
    behind("llm-d, Envoy, header", { header: "x-gateway-destination-endpoint" });
    behind("llm-d, Envoy", {});
    for (const order of ["first", "last"] as const)
      behind(`llm-d, shown ${order}`, { shown: { port: await freePort(), order } });
  }
  const start: Peer["start"] = async (engines) => {
    const nginx = await startNginx(engines, mkdtempSync(join(scratch, "nginx-")));
    return nginx && { port: nginx.port, end: () => {} };
  };
  return [...found, { name: "nginx", start }];
}

async function measure({ name, start, shownAt }: Peer): Promise<void> {
  const engines = new MarkedEngines();
  await engines.start(ENGINES, Number(values["time-scale"]));
  const router = await start(engines.urls);
  if (router === undefined) {
    await engines.stop();
    return;
  }
  const trace = mkdtempSync(join(scratch, "trace-"));
  const set = [`tap.metricsMillis=${values.every}`, "listen.drainNoticeMillis=0"].flatMap((one) => ["--set", one]);
  const where =
    shownAt === undefined
      ? ["--router", `http://127.0.0.1:${router.port}`]
      : ["--envoy-port", String(shownAt), "--set", "tap.envoy.plaintext=true"];
  const flags = [...where, "--name", name, "--record", trace, ...set];
  const tap = await startGateway(engines.urls, flags, 0, undefined, [], "tap");
  const port = shownAt === undefined ? tap.port : router.port;
  await firstAnswer(port);
  await load(port);
  // The last ones are looked at once more.
  await sleep(2 * Number(values.every) + 500);
  const why = await unexplained(tap.adminPort);
  tap.process.kill("SIGTERM");
  await once(tap.process, "exit");
  router.end();
  await report(name, trace, engines.went);
  if (why !== "") console.log(`  not shown by the counters: ${why}`);
  await engines.stop();
}

/** Requests that the counters did not explain, by reason. */
async function unexplained(adminPort: number): Promise<string> {
  const page = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
  return [...page.matchAll(/^gnomon_tap_unexplained_total\{reason="(\w+)"\} (\d+)/gm)]
    .filter(([, , count]) => count !== "0")
    .map(([, reason, count]) => `${reason} ${count}`)
    .join(", ");
}

/** A router may start to answer after its port is open. */
async function firstAnswer(port: number): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    if ((await chat(port, "warmup", "hello", 1, false)) === 200) return;
    await sleep(100);
  }
  throw new Error("the router behind the tap never answered");
}

async function load(port: number): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      const random = randomFor(client, 17);
      let prompt = "";
      while (next < requests) {
        const id = `r${next++}`;
        // A conversation of some turns, then another one.
        if (prompt.length > 12_000 || random.below(6) === 0) prompt = `Client ${client}, ${id}. `;
        prompt += words(random, 20 + random.below(250));
        const status = await chat(port, id, prompt, 4 + random.below(40), random.below(2) === 0);
        if (status !== 200) throw new Error(`${id}: ${status}`);
      }
    }),
  );
}

function words(random: { below(bound: number): number }, count: number): string {
  return Array.from({ length: count }, () => `w${random.below(5_000)} `).join("");
}

async function chat(port: number, id: string, text: string, tokens: number, stream: boolean): Promise<number> {
  const body = {
    model: "tiny",
    messages: [{ role: "user", content: `${text} mark-${id};` }],
    max_tokens: tokens,
    ...(stream && { stream, stream_options: { include_usage: true } }),
  };
  const answer = await request(`http://127.0.0.1:${port}/v1/chat/completions`, {
    dispatcher: agent,
    method: "POST",
    headers: { "content-type": "application/json", "x-request-id": id },
    body: JSON.stringify(body),
  });
  await answer.body.dump({ limit: 10_000_000 });
  return answer.statusCode;
}

async function report(name: string, trace: string, went: ReadonlyMap<string, string>): Promise<void> {
  const by = { header: 0, metrics: 0, none: 0 } as Record<string, number>;
  let [all, right, claimed, sure, rightOfSure] = [0, 0, 0, 0, 0];
  for await (const item of new TraceReader(trace).items()) {
    if (item.kind !== "record" || item.input.kind !== "request-arrived") continue;
    const { request: asked, observed } = item.input;
    const id = asked.id.split(".")[0]!;
    if (!id.startsWith("r") || observed === undefined) continue;
    all++;
    by[observed.by] = (by[observed.by] ?? 0) + 1;
    if (observed.by === "none") continue;
    const isRight = observed.endpoint === went.get(id);
    claimed += observed.sure;
    if (isRight) right++;
    if (observed.sure < SURE) continue;
    sure++;
    if (isRight) rightOfSure++;
  }
  const placed = all - by["none"]!;
  const share = (count: number, of: number) => (of === 0 ? "-" : (100 * (count / of)).toFixed(1));
  const cells = [
    share(by["header"]!, all),
    share(by["metrics"]!, all),
    share(by["none"]!, all),
    share(right, placed),
    share(claimed, placed),
    share(sure, placed),
    share(rightOfSure, sure),
  ];
  console.log([name.padEnd(22), ...cells.map((cell) => cell.padStart(14))].join(""));
  if (all !== requests) console.log(`  ${all} of ${requests} requests are in the trace`);
}
