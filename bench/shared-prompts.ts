/**
 * Prompts computed at one real vLLM engine and answered at another one, against answers of an engine that did both: the
 * texts are to be the same, and the engine that answers is to have fetched the prompts.
 *
 *     npx node bench/shared-prompts.ts --vllm "COMMAND PORT" [--prompts 20] [--tokens 40]
 *
 * COMMAND starts a vLLM; PORT stands for its port. Both engines share a folder by vLLM's ExampleConnector. The engine that
 * is to answer answers each prompt alone first, twice; then its cache and the folder are emptied, and the same prompts go
 * through a gateway with the profile gnomon-pd. About three minutes, most of it the engines' start.
 */
import type { ChildProcess } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { stringify } from "yaml";
import { ROLES_DEFAULT } from "#core/disaggregation/roles.ts";
import { randomFor } from "#core/random.ts";
import { endAll } from "./children.ts";
import { enginePort, engineReady, signalGroup, startGroup } from "./engine-group.ts";
import { startGateway } from "./gateway-process.ts";

const { values } = parseArgs({
  options: {
    vllm: { type: "string", default: "" },
    model: { type: "string", default: "tiny" },
    prompts: { type: "string", default: "20" },
    tokens: { type: "string", default: "40" },
  },
});
const FETCHED = /^vllm:prompt_tokens_by_source_total\{[^}]*source="external_kv_transfer"[^}]*\} ([\d.e+]+)$/m;

const scratch = mkdtempSync(join(tmpdir(), "gnomon-shared-prompts-"));
const store = join(scratch, "store");

const base = enginePort();
const engines = [startEngine(base), startEngine(base + 1)];
try {
  await Promise.all([engineReady(base), engineReady(base + 1)]);
  process.stderr.write(`${(performance.now() / 1_000).toFixed(0)} s: both engines are ready\n`);
  await compare();
} finally {
  endAll();
  for (const { pid } of engines) signalGroup(pid!, "SIGKILL");
  await sleep(500);
  rmSync(scratch, { recursive: true, force: true });
}
process.exit(0);

async function compare(): Promise<void> {
  const [prefill, decode] = [`http://127.0.0.1:${base}`, `http://127.0.0.1:${base + 1}`];
  const bodies = questions(Number(values.prompts));
  const alone = await answers(decode, bodies);
  const again = await answers(decode, bodies);
  const same = alone.filter((one, i) => one.text === again[i]!.text).length;
  await fetch(`${decode}/reset_prefix_cache`, { method: "POST" });
  for (const name of readdirSync(store)) rmSync(join(store, name), { recursive: true });
  const config = join(scratch, "gateway.yaml");
  const endpoints = [
    { url: prefill, labels: { [ROLES_DEFAULT.label]: "prefill" } },
    { url: decode, labels: { [ROLES_DEFAULT.label]: "decode" } },
  ];
  writeFileSync(config, stringify({ endpoints }));
  const { port } = await startGateway([], ["--config", config, "--profile", "gnomon-pd"], 1);
  const before = await fetchedAt(decode);
  const shared = await answers(`http://127.0.0.1:${port}`, bodies);
  const fetched = (await fetchedAt(decode)) - before;
  const promptTokens = shared.reduce((sum, one) => sum + one.promptTokens, 0);
  const equal = shared.filter((one, i) => one.text === alone[i]!.text).length;
  console.log(`${bodies.length} prompts, answered twice by one engine: ${same} with the same text`);
  console.log(`computed at one engine and answered at the other: ${equal} of ${shared.length} with that text`);
  console.log(`prompt tokens: ${promptTokens}; fetched by the engine that answers: ${fetched}`);
}

function questions(count: number): { readonly path: string; readonly body: string }[] {
  const random = randomFor(1, 1);
  return Array.from({ length: count }, (_, i) => {
    const text = Array.from({ length: 250 }, () => `word${random.below(10_000)}`).join(" ");
    const common = { model: values.model, max_tokens: Number(values.tokens), temperature: 0, ignore_eos: true };
    return i % 2 === 0
      ? {
          path: "/v1/chat/completions",
          body: JSON.stringify({ ...common, messages: [{ role: "user", content: text }] }),
        }
      : { path: "/v1/completions", body: JSON.stringify({ ...common, prompt: text }) };
  });
}

/** One after another, so that no other sequence is in a prompt's batch. */
async function answers(url: string, bodies: ReturnType<typeof questions>) {
  const all: { readonly text: string; readonly promptTokens: number }[] = [];
  for (const { path, body } of bodies) {
    const answer = await fetch(url + path, { method: "POST", headers: { "content-type": "application/json" }, body });
    if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
    const { choices, usage } = (await answer.json()) as {
      readonly choices: readonly { readonly text?: string; readonly message?: { readonly content: string } }[];
      readonly usage: { readonly prompt_tokens: number };
    };
    all.push({ text: choices[0]!.text ?? choices[0]!.message!.content, promptTokens: usage.prompt_tokens });
  }
  return all;
}

async function fetchedAt(url: string): Promise<number> {
  const page = await (await fetch(`${url}/metrics`)).text();
  return Number(FETCHED.exec(page)?.[1] ?? 0);
}

function startEngine(port: number): ChildProcess {
  const config = {
    kv_connector: "ExampleConnector",
    kv_role: "kv_both",
    kv_connector_extra_config: { shared_storage_path: store },
  };
  const line = `${values.vllm.replaceAll("PORT", String(port))} --kv-transfer-config '${JSON.stringify(config)}'`;
  return startGroup(line, { ...process.env, VLLM_SERVER_DEV_MODE: "1" });
}
