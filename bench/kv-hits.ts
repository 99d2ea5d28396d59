/**
 * How right the gateway is about what engines' caches hold, request by request: by their KV events, and by guessing from
 * what was sent, in one run. Conversations go through a gateway, and a second client fills and overwrites the engines'
 * caches behind its back.
 *
 * With --emulated the engines are two emulated ones, small, and --fault does something to their events: `drop` loses 1
 * % of the messages, `refuse` also answers no replay, `pause` sends nothing in the middle third, `reset` empties the
 * caches every 2 s, `restart` kills an engine at the first third and starts it again.
 *
 * Run: `npx node bench/kv-hits.ts --tokenizer FOLDER --engine URL [--engine URL] [--seconds N]` on engines that publish
 * KV events and report cached tokens, such as vLLM with --kv-events-config and --enable-prompt-tokens-details.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import Table from "cli-table3";
import { randomFor } from "#core/base/random.ts";
import { endAll } from "./children.ts";
import { startGateway } from "./gateway-process.ts";
import { EmulatedPair } from "./kv-hits/emulated-pair.ts";
import { converse } from "./kv-hits/conversations.ts";
import { minds, type MindsRow } from "./kv-hits/minds.ts";
import { SecondClient } from "./kv-hits/second-client.ts";

const { values } = parseArgs({
  options: {
    engine: { type: "string", multiple: true, default: [] },
    tokenizer: { type: "string", default: "" },
    model: { type: "string", default: "tiny" },
    seconds: { type: "string", default: "60" },
    "side-by-side": { type: "string", default: "4" },
    foreign: { type: "string", default: "1500" },
    seed: { type: "string", default: "1" },
    "keep-trace": { type: "string" },
    emulated: { type: "boolean", default: false },
    fault: { type: "string", default: "none" },
  },
});

const seed = Number(values.seed);
const folder = values["keep-trace"] ?? mkdtempSync(join(tmpdir(), "gnomon-kv-hits-"));
const fleet = values.emulated ? await EmulatedPair.start(values.tokenizer, values.model) : undefined;
const engines = fleet?.urls ?? values.engine;
const ports = engines.map((url) => Number(new URL(url).port));
const tokenizer = ["--set", "tokenizer.kind=huggingface", "--set", `tokenizer.file=${values.tokenizer}`];
const gateway = await startGateway(ports, [...tokenizer, "--record", folder, "--set", "kvEvents.mode=on"], 1);
const url = `http://127.0.0.1:${gateway.port}`;
const foreign = new SecondClient(randomFor(seed, 1), values.model);
try {
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  const foreignMax = Number(values.foreign);
  if (foreignMax > 64) foreign.start(engines, foreignMax, 300);
  const faulty = fleet?.fail(values.fault, Number(values.seconds));
  const counts = await converse(randomFor(seed, 2), {
    gateway: url,
    model: values.model,
    sideBySide: Number(values["side-by-side"]),
    turnsMax: 5,
    systemWords: 150,
    turnWords: 40,
    answerTokens: 24,
    seconds: Number(values.seconds),
  });
  await faulty;
  await foreign.stop();
  console.log({ ...counts, foreignPrompts: foreign.prompts, foreignTokens: foreign.tokens });
  const page = await (await fetch(`${url}/metrics`)).text();
  console.log(
    page
      .split("\n")
      .filter((line) => /^gnomon_(kv_events|endpoint_hit|endpoint_prefix_precise)/.test(line) && !line.endsWith(" 0"))
      .join("\n"),
  );
} finally {
  endAll();
  while (existsSync(`/proc/${gateway.pid}`)) await new Promise((resolve) => setTimeout(resolve, 50));
}

const { rows, cost } = await minds(folder);
const bytes = readdirSync(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
console.log({ ...cost, traceBytes: bytes, traceBytesPerRequest: Math.round(bytes / rows.length) });
const table = new Table({
  head: ["expected by", "requests", "exact %", "mean |error|", "worst over", "worst under", "beyond in flight"],
});
table.push(
  line(
    "events",
    rows.filter((row) => row.source === "precise"),
    (row) => row.expected,
  ),
);
table.push(
  line(
    "guess, same requests",
    rows.filter((row) => row.source === "precise"),
    (row) => row.guessed,
  ),
);
table.push(line("guess, all requests", rows, (row) => row.guessed));
console.log(table.toString());
for (const row of rows.filter((one) => one.source === "precise" && one.expected !== one.reported).slice(0, 40))
  console.log(JSON.stringify(row));
if (values["keep-trace"] === undefined) rmSync(folder, { recursive: true });

function line(name: string, of: readonly MindsRow[], expected: (row: MindsRow) => number): (string | number)[] {
  const errors = of.map((row) => expected(row) - row.reported);
  const exact = errors.filter((error) => error === 0).length;
  const beyond = of.filter((row, i) => Math.abs(errors[i]!) > row.inFlightTokens).length;
  const mean = errors.reduce((sum, error) => sum + Math.abs(error), 0) / Math.max(1, of.length);
  const share = ((100 * exact) / Math.max(1, of.length)).toFixed(1);
  return [
    name,
    of.length,
    share,
    mean.toFixed(1),
    Math.max(0, ...errors),
    Math.max(0, ...errors.map((error) => -error)),
    beyond,
  ];
}
