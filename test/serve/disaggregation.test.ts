import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { replayCommand } from "#cli/replay.ts";
import { servePlan } from "#cli/serve/serve-options.ts";
import { ROLES_DEFAULT } from "#core/profile/profile-stages.ts";
import type { Input } from "#core/input/input.ts";
import { KV_TRANSFER_DEFAULTS } from "#emulator/kv-transfer/kv-transfer.ts";
import { type Emulator, startEmulator } from "#emulator/server.ts";
import { engineDefaults } from "#engine/config.ts";
import { startedGateway } from "./started-gateway.ts";
import { inProcess } from "../cli/in-process.ts";
import { until } from "../live/discovery/fleet-under-test.ts";

const STEP = { kind: "coefficients", baseMicros: 500, perPrefillTokenMicros: 2, perDecodeMicros: 10 } as const;
const ENGINE = engineDefaults({ blockTokens: 16, kvBlocks: 2_000, modelTokensMax: 4_000, stepTime: STEP });
const ROLES = ["prefill", "prefill", "decode", "decode"];
const REQUESTS = 40;

interface Rig {
  readonly url: string;
  readonly engines: readonly Emulator[];
  readonly inputs: readonly Input[];
  readonly directory: string;
  readonly close: () => Promise<void>;
}

async function rig(t: TestContext, more: readonly string[] = []): Promise<Rig> {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-disaggregation-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const common = { host: "127.0.0.1", port: 0, model: "tiny", timeScale: 1, engine: ENGINE };
  const engines = await Promise.all(
    ROLES.map((_, i) => startEmulator({ ...common, seed: i + 1, kvTransfer: KV_TRANSFER_DEFAULTS })),
  );
  const set = [
    `record.directory=${directory}`,
    "routing.profile=gnomon-pd",
    "listen.drainNoticeMillis=0",
    "listen.warmUpMillis=0",
    ...more,
  ];
  const stack = await startedGateway(servePlan({ set }, {}));
  const inputs: Input[] = [];
  stack.intake.listen({ accepted: (input) => void inputs.push(input) });
  const { url } = await stack.gateway.listen("127.0.0.1", 0);
  const facts = { dataParallelRank: undefined, apiKey: undefined, kvCapacityTokens: undefined };
  const targets = engines.map((engine, i) => ({
    id: String.fromCodePoint(97 + i),
    url: engine.url,
    labels: { [ROLES_DEFAULT.label]: ROLES[i]! },
    cordoned: false,
    concurrencyMax: undefined,
    ...facts,
  }));
  stack.keeper.setTargets("static", targets);
  await until("all are there", () => inputs.filter(({ kind }) => kind === "endpoint-joined").length === ROLES.length);
  const { close } = stack;
  t.after(async () => {
    await close();
    await Promise.all(engines.map((engine) => engine.close()));
  });
  return { url, engines, inputs, directory, close };
}

/** The text of a stream, which has to be whole, of as many tokens as its counts state. */
async function ask(url: string, number: number): Promise<string> {
  const answer = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: "tiny",
      prompt: Array.from({ length: 600 }, (_, i) => 1 + ((number * 37 + i) % 5_000)),
      max_tokens: 12,
      ignore_eos: true,
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true },
    }),
  });
  const body = await answer.text();
  assert.equal(answer.status, 200, body);
  assert.match(body, /data: \[DONE\]\n\n$/);
  assert.match(body, /"prompt_tokens":600,"total_tokens":612,"completion_tokens":12/);
  return [...body.matchAll(/"text":("(?:[^"\\]|\\.)*")/g)].map(([, text]) => JSON.parse(text!) as string).join("");
}

const order = ({ url }: Emulator, body: object) =>
  fetch(`${url}/emulator/kv-transfer`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

test("prompts go from engines that compute them to others that answer, and a replay decides alike", async (t) => {
  const { url, engines, inputs, directory, close } = await rig(t);
  const texts = await Promise.all(Array.from({ length: REQUESTS }, (_, i) => ask(url, i)));
  const finished = inputs.filter(({ kind }) => kind === "prefill-finished").length;
  assert.equal(finished, REQUESTS);
  const [prefills, decodes] = [engines.slice(0, 2), engines.slice(2)];
  const sum = (of: readonly Emulator[], read: (one: Emulator) => number) => of.reduce((all, one) => all + read(one), 0);
  assert.equal(
    sum(decodes, (one) => one.stats().transfers?.fetched ?? 0),
    REQUESTS,
  );
  await until("no blocks are held", () => sum(prefills, (one) => one.stats().transfers?.holding ?? 0) === 0);
  // What one engine answers that computes the prompt itself.
  assert.equal(await ask(decodes[0]!.url, 3), texts[3]);
  await close();
  const { code, out } = await inProcess(t, [replayCommand()], ["replay", directory]);
  assert.equal(code, 0, out);
  assert.match(out, new RegExp(`${REQUESTS} decisions`));
});

test("an embedding is computed by one engine, beside prompts that are shared", async (t) => {
  const { url, engines, inputs } = await rig(t);
  const asks = Array.from({ length: REQUESTS }, (_, i) => ask(url, i));
  const embedding = await fetch(`${url}/v1/embeddings`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "tiny", input: "word ".repeat(900) }),
  });
  assert.equal(embedding.status, 404, "an emulated engine has no such route, and nobody computes its prompt before");
  await Promise.all(asks);
  const fetched = engines.reduce((sum, engine) => sum + (engine.stats().transfers?.fetched ?? 0), 0);
  assert.equal(fetched, REQUESTS);
  await until("all ends are known", () => inputs.filter(({ kind }) => kind === "request-finished").length > REQUESTS);
});

test("transfers that fail and an engine of each kind that dies lose nothing, and leave no blocks held", async (t) => {
  // One request may meet both engines that die, and on a busy machine transfers that get no answer in time.
  const { url, engines, inputs, directory, close } = await rig(t, ["limits.attemptsMax=8"]);
  await Promise.all(engines.slice(2).map((engine) => order(engine, { failShare: 0.3 })));
  await Promise.all(Array.from({ length: REQUESTS }, (_, i) => ask(url, i)));
  assert.ok(inputs.some(({ kind }) => kind === "transfer-failed"));
  await Promise.all(engines.slice(2).map((engine) => order(engine, { failShare: 0 })));
  const asked = Promise.all(Array.from({ length: REQUESTS }, (_, i) => ask(url, 100 + i)));
  await new Promise((resolve) => setTimeout(resolve, 20));
  await engines[0]!.close();
  await engines[2]!.close();
  await asked;
  const [, prefill, , decode] = engines;
  await until("no blocks are held", () => prefill!.stats().transfers?.holding === 0);
  await until("no request is left", () => decode!.stats().inFlight === 0);
  const ends = inputs.filter((input) => input.kind === "request-finished");
  assert.ok(ends.every(({ outcome }) => outcome === "ok"));
  assert.equal(ends.length, 2 * REQUESTS);
  await close();
  const { code, out } = await inProcess(t, [replayCommand()], ["replay", directory]);
  assert.equal(code, 0, out);
});
