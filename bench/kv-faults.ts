/**
 * What is left of stale beliefs when real engines' KV events go wrong: conversations before two vLLM engines whose caches a
 * second client fills and overwrites, while a relay between each engine and the gateway loses messages, and one engine dies
 * and comes back. Each fault has a time of its own and a time after it, and every request is compared with the cached
 * tokens that its engine reported.
 *
 *     npx node bench/kv-faults.ts --tokenizer FOLDER --vllm "COMMAND PORT" [--seconds 12] [--fault NAME]
 *
 * COMMAND starts a vLLM that reports cached tokens (--enable-prompt-tokens-details); PORT stands for its port. NAME is
 * drop, pause, drop-refused, pause-refused or restart, one or several with commas; all where it is left out. Two
 * engines on two cores take one to two minutes to start, and one that is started again another: a fault a call takes
 * two to four minutes, all of them six.
 *
 * With --seed (the engines' PYTHONHASHSEED) the events reach the gateway without tokens, and it hashes as the engines do.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import Table from "cli-table3";
import { stringify } from "yaml";
import { randomFor } from "#core/random.ts";
import { TraceReader } from "#trace/reader.ts";
import { endAll } from "./children.ts";
import { startGateway } from "./gateway-process.ts";
import { converse } from "./kv-hits/conversations.ts";
import type { RelayFaults } from "./kv-hits/event-relay.ts";
import { minds, type MindsRow } from "./kv-hits/minds.ts";
import { RealPair } from "./kv-hits/real-pair.ts";
import { SecondClient } from "./kv-hits/second-client.ts";

const { values } = parseArgs({
  options: {
    vllm: { type: "string", default: "" },
    tokenizer: { type: "string", default: "" },
    model: { type: "string", default: "tiny" },
    seconds: { type: "string", default: "12" },
    foreign: { type: "string", default: "3500" },
    "side-by-side": { type: "string", default: "4" },
    seed: { type: "string" },
    fault: { type: "string", default: "drop,pause,drop-refused,pause-refused,restart" },
  },
});

interface Phase {
  readonly name: string;
  readonly fromMillis: number;
  /** Messages that the relays had lost before. */
  readonly lostBefore: number;
}

const WELL: RelayFaults = { dropShare: 0, paused: false, replayRefused: false };
/** What goes wrong, each for its time; after each comes a time in which nothing does. */
const FAULTS: readonly (readonly [key: string, name: string, faults: RelayFaults])[] = [
  ["drop", "1 % of messages dropped", { ...WELL, dropShare: 0.01 }],
  ["pause", "publisher paused", { ...WELL, paused: true }],
  ["drop-refused", "1 % dropped, replay refused", { ...WELL, dropShare: 0.01, replayRefused: true }],
  ["pause-refused", "publisher paused, replay refused", { ...WELL, paused: true, replayRefused: true }],
];
const RESTART = "restart";
const wanted = values.fault.split(",");
const known = [...FAULTS.map(([key]) => key), RESTART];
if (values.vllm === "" || wanted.some((one) => !known.includes(one))) {
  console.error(`bench: expected --vllm "COMMAND PORT" and --fault of ${known.join(", ")}, got ${values.fault}`);
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), "gnomon-kv-faults-"));
const pair = new RealPair(values.vllm, values.seed !== undefined);
await pair.start();
const configFile = join(folder, "gateway.yaml");
writeFileSync(configFile, stringify({ endpoints: pair.endpoints }));
const trace = join(folder, "trace");
const tokenizer = ["--set", "tokenizer.kind=huggingface", "--set", `tokenizer.file=${values.tokenizer}`];
if (values.seed !== undefined) {
  const hash = [
    "prefix.blockHash=vllm-sha256",
    `prefix.engineSeed=${values.seed}`,
    `prefix.engineModels=["${values.model}"]`,
  ];
  tokenizer.push(...hash.flatMap((one) => ["--set", one]));
}
const gateway = await startGateway([], ["--config", configFile, ...tokenizer, "--record", trace], 1);
const url = `http://127.0.0.1:${gateway.port}`;
const phases: Phase[] = [];
const stop = { isOver: false };
const foreign = new SecondClient(randomFor(1, 1), values.model);
const millis = 1_000 * Number(values.seconds);

const lostSoFar = (): number => pair.relays.reduce((sum, { lost }) => sum + lost, 0);
const begin = (name: string, faults: RelayFaults): void => {
  process.stderr.write(`${(performance.now() / 1_000).toFixed(0)} s: ${name}\n`);
  phases.push({ name, fromMillis: Date.now(), lostBefore: lostSoFar() });
  for (const relay of pair.relays) Object.assign(relay.faults, faults);
};

try {
  await sleep(1_500);
  foreign.start(pair.urls, Number(values.foreign), 300);
  const talking = talk();
  begin("nothing", WELL);
  await sleep(millis);
  for (const [key, name, faults] of FAULTS) {
    if (!wanted.includes(key)) continue;
    begin(name, faults);
    await sleep(millis);
    begin("  after it", WELL);
    await sleep(millis);
  }
  if (wanted.includes(RESTART)) {
    begin("an engine killed and started again", WELL);
    await pair.restart();
    begin("  after it", WELL);
    await sleep(millis);
  }
  stop.isOver = true;
  const counts = await talking;
  await foreign.stop();
  const lost = pair.relays.map((relay) => relay.lost);
  const passed = pair.relays.map((relay) => relay.passed);
  console.log({ ...counts, foreignPrompts: foreign.prompts, messagesPassed: passed, messagesLost: lost });
  const page = await (await fetch(`${url}/metrics`)).text();
  const events =
    /^gnomon_kv_events_total.*event="(?:gap|gap-closed|missed|restart|disconnect|undecodable)".* [1-9]\d*$/gm;
  console.log((page.match(events) ?? []).join("\n"));
} finally {
  endAll();
  while (existsSync(`/proc/${gateway.pid}`)) await sleep(50);
  pair.close();
}
await report();
rmSync(folder, { recursive: true });
process.exit(0);

/** Conversations until the faults are over. */
async function talk(): Promise<{ turns: number; failed: number }> {
  const sum = { turns: 0, failed: 0 };
  for (let seed = 2; !stop.isOver; seed++) {
    const { turns, failed } = await converse(randomFor(1, seed), {
      gateway: url,
      model: values.model,
      sideBySide: Number(values["side-by-side"]),
      turnsMax: 5,
      systemWords: 150,
      turnWords: 40,
      answerTokens: 24,
      seconds: 4,
    });
    sum.turns += turns;
    sum.failed += failed;
  }
  return sum;
}

async function report(): Promise<void> {
  let startMillis = 0;
  for await (const item of new TraceReader(trace).items()) {
    if (item.kind !== "run") continue;
    startMillis = item.header.startWallMicros / 1_000;
    break;
  }
  const { rows } = await minds(trace);
  const table = new Table({
    head: [
      "what went wrong",
      "lost",
      "requests",
      "by events",
      "exact %",
      "stale",
      "worst",
      "too few, worst",
      "stale by guess",
    ],
  });
  phases.forEach(({ name, fromMillis, lostBefore }, i) => {
    const [from, to] = [
      1_000 * (fromMillis - startMillis),
      1_000 * ((phases[i + 1]?.fromMillis ?? Infinity) - startMillis),
    ];
    const those = rows.filter(({ at }) => at >= from && at < to);
    const lost = (phases[i + 1]?.lostBefore ?? lostSoFar()) - lostBefore;
    table.push(line(name, lost, those));
  });
  console.log(table.toString());
  console.log("lost: messages of both engines; a paused publisher's are lost too.");
  console.log("stale: more cached tokens expected than there were, beyond what was in flight there; worst in tokens.");
}

function line(name: string, lost: number, rows: readonly MindsRow[]): (string | number)[] {
  const over = (row: MindsRow, expected: number) => Math.max(0, expected - row.reported - row.inFlightTokens);
  const stale = rows.filter((row) => over(row, row.expected) > 0);
  const exact = rows.filter((row) => row.expected === row.reported).length;
  return [
    name,
    lost,
    rows.length,
    rows.filter(({ source }) => source === "precise").length,
    ((100 * exact) / Math.max(1, rows.length)).toFixed(1),
    stale.length,
    Math.max(0, ...rows.map((row) => over(row, row.expected))),
    Math.max(0, ...rows.map((row) => row.reported - row.expected)),
    rows.filter((row) => over(row, row.guessed) > 0).length,
  ];
}
