import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { kept, message } from "../children.ts";
import { listen, questions } from "../continuation/stream.ts";
import { enginePort, engineReady, signalGroup, startGroup } from "../engine-group.ts";
import { startGateway } from "../gateway-process.ts";
import { askMessages } from "./messages-stream.ts";
import type { Row } from "./report.ts";
import { median } from "#core/base/quantile.ts";

export interface PausesOptions {
  /** Starts an engine as one group of processes, PORT standing for its port; emulated ones where it is left out. */
  readonly command: string | undefined;
  readonly engines: number;
  readonly streams: number;
  readonly tokens: number;
  readonly stopSeconds: number;
  /** Of PAUSES. */
  readonly cases: readonly string[];
}

interface Engine {
  readonly port: number;
  /** To all of its processes. */
  signal(name: NodeJS.Signals): void;
  /** To its server alone, as a container's first process gets it. */
  signalServer(name: NodeJS.Signals): void;
}

interface Rig {
  readonly engines: readonly Engine[];
  readonly gatewayPid: number;
  readonly stopMillis: number;
}

const STEP_MILLIS = 30;
/** Between two that come back. */
const APART_MILLIS = 5_000;
const BEFORE_MILLIS = 3_000;

interface Pause {
  readonly what: string;
  /** Engines that the gateway knows of. */
  readonly engines: (all: number) => number;
  readonly happens: (rig: Rig) => Promise<void>;
  readonly ends?: true;
}

async function stops(engine: Engine, millis: number): Promise<void> {
  engine.signal("SIGSTOP");
  await sleep(millis);
  engine.signal("SIGCONT");
}

const PAUSES: Readonly<Record<string, Pause>> = {
  only: {
    what: "the only engine is stopped",
    engines: () => 1,
    happens: ({ engines, stopMillis }) => stops(engines[0]!, stopMillis),
  },
  one: {
    what: "one of all engines is stopped",
    engines: (all) => all,
    happens: ({ engines, stopMillis }) => stops(engines[0]!, stopMillis),
  },
  all: {
    what: "all engines are stopped, and come back one after the other",
    engines: (all) => all,
    happens: async ({ engines, stopMillis }) =>
      void (await Promise.all(engines.map((engine, i) => stops(engine, stopMillis + i * APART_MILLIS)))),
  },
  gateway: {
    what: "the gateway itself is stopped",
    engines: (all) => all,
    happens: async ({ gatewayPid, stopMillis }) => {
      process.kill(gatewayPid, "SIGSTOP");
      await sleep(stopMillis);
      process.kill(gatewayPid, "SIGCONT");
    },
  },
  drain: {
    what: "the server of one of all engines gets SIGTERM",
    engines: (all) => all,
    happens: async ({ engines }) => engines[0]!.signalServer("SIGTERM"),
    ends: true,
  },
};

/** Engines, or the gateway, pause or drain under streams and whole answers: all answers are to be whole. */
export async function pausesPart(options: PausesOptions): Promise<Row[]> {
  const { command, streams, tokens, stopSeconds } = options;
  const engines = await Promise.all(
    command === undefined
      ? Array.from({ length: options.engines }, emulated)
      : Array.from({ length: options.engines }, (_, i) => startReal(command, i)),
  );
  const rows: Row[] = [];
  for (const name of options.cases) {
    const pause = PAUSES[name];
    if (pause === undefined)
      throw new Error(`--cases: expected some of ${Object.keys(PAUSES).join(", ")}, got ${name}`);
    const count = pause.engines(engines.length);
    const gateway = await startGateway(
      engines.slice(0, count).map(({ port }) => port),
      [],
      0,
    );
    const asked = questions(streams, streams, tokens);
    const begins = performance.now();
    const streamed = Promise.all(asked.map((question, i) => listen(gateway.port, `${name}-${i}`, question)));
    const messages = Promise.all(asked.map((_one, i) => askMessages(gateway.port, i, tokens)));
    const whole = Promise.all(asked.map((_one, i) => askWhole(gateway.port, i, tokens)));
    await sleep(BEFORE_MILLIS);
    await pause.happens({ engines, gatewayPid: gateway.pid, stopMillis: 1_000 * stopSeconds });
    const received = [...(await streamed), ...(await messages)];
    const answers = await whole;
    const flaws = received.filter(({ flaw }) => flaw !== "");
    const page = await (await fetch(`http://127.0.0.1:${gateway.port}/metrics`)).text();
    const counted = ["streams_continued_total", "requests_moved_total", "endpoint_verdicts_total"].flatMap(
      (metric) => page.match(new RegExp(`^gnomon_${metric}.* [1-9]\\d*$`, "gm")) ?? [],
    );
    process.kill(gateway.pid, "SIGTERM");
    const silences = received.map(({ arrivals }) => longestGap([begins, ...arrivals]));
    const failed = answers.filter((isWhole) => !isWhole).length;
    rows.push({
      what: `${pause.what}: ${streams} streams of OpenAI's, as many of Anthropic's messages and whole answers of ${tokens} tokens, ${count} engines, ${stopSeconds} s`,
      figure:
        `${received.length - flaws.length} streams and ${answers.length - failed} answers whole` +
        `${flaws.length === 0 ? "" : ` (${flaws[0]!.flaw})`}; longest silence of a stream ` +
        `${(Math.max(...silences) / 1_000).toFixed(1)} s, median ${(median(silences) / 1_000).toFixed(1)} s; ` +
        counted.map((line) => line.replace("gnomon_", "")).join(", "),
      holds: flaws.length === 0 && failed === 0,
    });
    console.error(rows.at(-1));
    if (pause.ends === true) break;
  }
  for (const engine of engines) engine.signal("SIGKILL");
  return rows;
}

async function emulated(): Promise<Engine> {
  const file = join(import.meta.dirname, "../continuation/engine.ts");
  const child: ChildProcess = kept(
    fork(file, ["0", String(STEP_MILLIS)], { stdio: ["ignore", "inherit", "inherit", "ipc"] }),
  );
  const { port } = (await message(child)) as { port: number };
  const signal = (name: NodeJS.Signals): void => void child.kill(name);
  return { port, signal, signalServer: signal };
}

const BASE = enginePort();

async function startReal(command: string, number: number): Promise<Engine> {
  const port = BASE + number;
  const engine = startGroup(command.replaceAll("PORT", String(port)));
  await engineReady(port, engine);
  const group = engine.pid!;
  return {
    port,
    signal: (name) => signalGroup(group, name),
    signalServer: (name) => void process.kill(group, name),
  };
}

/** Whether an answer that does not stream came whole. */
async function askWhole(port: number, number: number, tokens: number): Promise<boolean> {
  const prompt = `Request ${number} in one piece: which of the ${number} ships came back?`;
  const body = JSON.stringify({ model: "tiny", prompt, max_tokens: tokens, temperature: 0, ignore_eos: true });
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    return answer.status === 200 && /"finish_reason": ?"length"/.test(await answer.text());
  } catch {
    return false;
  }
}

function longestGap(arrivals: readonly number[]): number {
  return arrivals.slice(1).reduce((longest, at, i) => Math.max(longest, at - arrivals[i]!), 0);
}
