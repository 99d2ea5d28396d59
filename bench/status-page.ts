/**
 * What the status page costs: CPU of the gateway with the page open in a browser and closed, in turns, and the bytes that
 * the page and its answers have. 100 endpoints and 200 requests a second of 2 KB by default.
 *
 *     npx node bench/status-page.ts [--endpoints 100] [--rate 200] [--rounds 6] [--millis 10000]
 *
 * The gateway is what `serve` starts, with its defaults, on the first core; engines, senders and the browser are on the
 * last. CPU is the time that the gateway's threads ran, from /proc. Each round has one time of each kind, in an order that
 * turns about; medians are shown. Without Chromium a loop asks as the page does.
 */
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { Agent, get, request } from "node:http";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { endAll, kept, message } from "./children.ts";
import { cpuMicros, pinned, startGateway } from "./gateway-process.ts";
import { median } from "./median.ts";

const CHROMIUM = "/usr/bin/chromium";
const POLL_MILLIS = 2_000;
const TICK_MILLIS = 20;
const WARM_UP_MILLIS = 15_000;
const BODY_CHARS = 1_900;
const ANSWERS = 300;
const IDLE_MILLIS = 3_000;

const { values } = parseArgs({
  options: {
    endpoints: { type: "string", default: "100" },
    rate: { type: "string", default: "200" },
    rounds: { type: "string", default: "6" },
    millis: { type: "string", default: "10000" },
  },
});
const [endpoints, rate, rounds, millis] = [values.endpoints, values.rate, values.rounds, values.millis].map(Number) as [
  number,
  number,
  number,
  number,
];
const agent = new Agent({ keepAlive: true, maxSockets: 256 });

try {
  await main();
} finally {
  endAll();
}

async function main(): Promise<void> {
  const { ports } = await upstreams();
  const { port, adminPort, pid } = await startGateway(ports, [], 0);
  const sender = sendAt(port);
  await wait(WARM_UP_MILLIS);
  await bytes(adminPort);
  const viewer = await openViewer(adminPort);
  await viewer.open();
  await wait(WARM_UP_MILLIS / 3);
  const cpu: Record<"open" | "closed", number[]> = { open: [], closed: [] };
  for (let round = 0; round < rounds; round++) {
    for (const kind of round % 2 === 0 ? (["closed", "open"] as const) : (["open", "closed"] as const)) {
      await viewer[kind === "open" ? "open" : "close"]();
      await wait(500);
      const [before, started] = [cpuMicros([pid]), performance.now()];
      await wait(millis);
      cpu[kind].push((cpuMicros([pid]) - before) / 1_000 / ((performance.now() - started) / 1_000));
    }
  }
  const { sent, failed } = sender.stop();
  await viewer.close();
  const answerMillis = await cpuOfAnswers(adminPort, pid);
  await viewer.end();
  const [open, closed] = [median(cpu.open), median(cpu.closed)];
  const differences = cpu.open.map((one, i) => one - cpu.closed[i]!);
  console.log(`${endpoints} endpoints, ${sent} requests sent, ${failed} failed, ${rounds} rounds of ${millis} ms`);
  console.log(`page closed          ${closed.toFixed(1)} ms of CPU a second`);
  console.log(`page open (${viewer.name}) ${open.toFixed(1)} ms of CPU a second`);
  console.log(
    `one answer           ${answerMillis.toFixed(2)} ms of CPU, its sending included; the page asks every ${POLL_MILLIS} ms`,
  );
  console.log(
    `difference           ${median(differences).toFixed(1)} ms a second (${differences.map((one) => one.toFixed(1)).join(", ")})`,
  );
}

/** CPU of the gateway for one answer to the page, over many in a row with no other traffic than scrapes. */
async function cpuOfAnswers(port: number, pid: number): Promise<number> {
  const { traffic } = JSON.parse(await read(port, "/gnomon/overview")) as { traffic: { slots: { slot: number }[] } };
  const path = `/gnomon/overview?slot=${traffic.slots.at(-2)?.slot ?? -1}`;
  const idle = async (): Promise<number> => {
    const [before, started] = [cpuMicros([pid]), performance.now()];
    await wait(IDLE_MILLIS);
    return (cpuMicros([pid]) - before) / (performance.now() - started);
  };
  for (let i = 0; i < ANSWERS; i++) await read(port, path);
  const background = await idle();
  const [before, started] = [cpuMicros([pid]), performance.now()];
  for (let i = 0; i < ANSWERS; i++) await read(port, path);
  return (cpuMicros([pid]) - before - background * (performance.now() - started)) / ANSWERS / 1_000;
}

async function upstreams(): Promise<{ readonly ports: number[] }> {
  const file = join(import.meta.dirname, "stub-upstream.ts");
  const [command, args] = pinned(availableParallelism() - 1, process.execPath, [file, String(endpoints)]);
  return (await message(kept(spawn(command, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] })))) as {
    ports: number[];
  };
}

/** Requests at a steady rate, whether or not those before are answered. */
function sendAt(port: number): { stop(): { sent: number; failed: number } } {
  let [sent, failed, due] = [0, 0, 0];
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    due += ((now - last) * rate) / 1_000;
    last = now;
    for (; due >= 1; due--) {
      sent++;
      send(port, sent, () => failed++);
    }
  }, TICK_MILLIS);
  return {
    stop: () => {
      clearInterval(timer);
      return { sent, failed };
    },
  };
}

function send(port: number, number: number, fails: () => void): void {
  const content = `${number % 32} ${"word ".repeat(BODY_CHARS / 5)} ${number}`;
  const body = JSON.stringify({ model: "tiny", max_tokens: 10, messages: [{ role: "user", content }] });
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  const call = request({ port, host: "127.0.0.1", method: "POST", path: "/v1/chat/completions", agent, headers });
  call.on("response", (answer) => {
    if (answer.statusCode !== 200) fails();
    answer.resume();
  });
  call.on("error", fails);
  call.end(body);
}

function read(port: number, path: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get({ port, host: "127.0.0.1", path, agent }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (part: string) => (text += part));
      answer.on("end", () => resolve(text));
    }).on("error", reject);
  });
}

/** What a browser fetches: the page, its scripts, the first answer, and the next one. */
async function bytes(port: number): Promise<void> {
  const page = await read(port, "/gnomon/");
  const scripts = new Map<string, string>();
  const add = async (path: string): Promise<void> => {
    if (scripts.has(path)) return;
    const text = await read(port, path);
    scripts.set(path, text);
    for (const [, name] of text.matchAll(/from "(\.[^"]+)"/g)) await add(new URL(name!, `http://x${path}`).pathname);
  };
  await add(`/gnomon/${/src="(page\/[^"]+)"/.exec(page)![1]!}`);
  const [, library] = /"preact":"\.\/([^"]+)"/.exec(page)!;
  await add(`/gnomon/${library}`);
  const first = await read(port, "/gnomon/overview");
  const { decisions, traffic } = JSON.parse(first) as {
    decisions: { sequence: number }[];
    traffic: { slots: { slot: number }[] };
  };
  await wait(POLL_MILLIS);
  const known = `decisions=${decisions[0]?.sequence ?? -1}&slot=${traffic.slots.at(-2)?.slot ?? -1}`;
  const next = await read(port, `/gnomon/overview?${known}`);
  const row = (name: string, text: string): void => {
    console.log(
      `${name.padEnd(20)} ${String(Buffer.byteLength(text)).padStart(8)} bytes, ${gzipSync(text).length} in gzip`,
    );
  };
  row("page with its style", page);
  row(`${scripts.size} scripts`, [...scripts.values()].join(""));
  row("first answer", first);
  row("every further one", next);
}

interface Viewer {
  readonly name: string;
  open(): Promise<void>;
  close(): Promise<void>;
  end(): Promise<void>;
}

async function openViewer(port: number): Promise<Viewer> {
  if (!existsSync(CHROMIUM)) return asking(port);
  const { chromium } = await import("playwright-core");
  const args = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"];
  const browser = await chromium.launch({ executablePath: CHROMIUM, args });
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  return {
    name: "Chromium",
    open: async () => {
      await page.goto(`http://127.0.0.1:${port}/gnomon/`);
      await page.locator("#endpoints tbody tr").first().waitFor();
    },
    close: async () => {
      await page.goto("about:blank");
    },
    end: () => browser.close(),
  };
}

function asking(port: number): Viewer {
  let timer: NodeJS.Timeout | undefined;
  const stop = (): Promise<void> => {
    clearInterval(timer);
    return Promise.resolve();
  };
  return {
    name: "a loop",
    open: async () => {
      await stop();
      timer = setInterval(() => void read(port, "/gnomon/overview?slot=9999999999"), POLL_MILLIS);
    },
    close: stop,
    end: stop,
  };
}
