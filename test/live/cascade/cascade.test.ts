import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import OpenAI from "openai";
import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import type { Emulator } from "#emulator/server.ts";
import type { Tokenizer } from "#live/tokenizer/text/tokenizer.ts";
import type { CascadeOptions } from "#live/cascade/cascades.ts";
import { startAs } from "../../emulator/captures.ts";
import {
  CHAT,
  LOWEST_ID_FIRST,
  NEVER_OPEN,
  type Rig,
  ask,
  encodeWords,
  startRig,
  WORD_TOKENIZER,
} from "../gateway/rig.ts";

/** Of the emulated engines' answers the mean lies between -0.5 and -0.25. */
const NEVER = -1;
const ALWAYS = 0;
const MIDDLE = -0.375;

const cascade = (logprobMin: number, more: Partial<CascadeOptions> = {}, judgedTokens?: number): CascadeOptions => ({
  chains: [{ name: "assistant", steps: [{ model: "small", logprobMin }, { model: "large" }], judgedTokens }],
  escalationsInFlightMax: 64,
  heldBytesMax: 1 << 24,
  ...more,
});

describe("a cascade of two models", () => {
  let emulators: Emulator[];
  let rig: Rig | undefined;
  before(async () => {
    emulators = [
      await startAs("18101", { model: "small", faults: true }),
      await startAs("18101", { model: "large", faults: true }),
    ];
  });
  after(async () => {
    for (const emulator of emulators) await emulator.close();
  });

  async function started(options: CascadeOptions, more: object = {}): Promise<{ rig: Rig; client: OpenAI }> {
    await rig?.close();
    const urls = emulators.map(({ url }) => url);
    const common = { urls, modelsEach: [["small"], ["large"]], breaker: NEVER_OPEN, requestUsage: true };
    rig = await startRig([], { ...common, stages: { cascade: options }, ...more });
    return { rig, client: new OpenAI({ baseURL: `${rig.url}/v1`, apiKey: "sk-test", maxRetries: 0 }) };
  }
  after(() => rig?.close());

  const counts = (of: Rig) => of.gateway.shared.judges!.counts.get("assistant");

  /** A stream as its client sees it, which must be one answer of one model. */
  async function chat(client: OpenAI, content: string, more: object = {}, headers: Record<string, string> = {}) {
    const messages = [{ role: "user" as const, content }];
    const body = { model: "assistant", messages, stream: true as const, temperature: 0, max_completion_tokens: 16 };
    const stream = await client.chat.completions.create({ ...body, ...more }, { headers });
    const [ids, models] = [new Set<string>(), new Set<string>()];
    let [text, ends, scored, role] = ["", 0, 0, 0];
    for await (const chunk of stream) {
      ids.add(chunk.id);
      models.add(chunk.model);
      const [choice] = chunk.choices;
      if (choice?.delta.role !== undefined) role++;
      text += choice?.delta.content ?? "";
      if ((choice?.finish_reason ?? null) !== null) ends++;
      scored += choice?.logprobs?.content?.length ?? 0;
    }
    assert.deepEqual([ids.size, models.size, ends, role], [1, 1, 1, 1]);
    return { model: [...models][0]!, text, scored };
  }

  const alone = async (client: OpenAI, model: string, content: string) => (await chat(client, content, { model })).text;

  test("gives the first model's answer where that is sure, as it would be without a cascade", async () => {
    const { rig: now, client } = await started(cascade(NEVER, {}, 4));
    const text = await alone(client, "small", "hi there");
    assert.deepEqual(await chat(client, "hi there"), { model: "small", text, scored: 0 });
    assert.deepEqual(counts(now), { sure: 1 });
    const judged = now.inputs.find(({ kind }) => kind === "answer-judged");
    assert.ok(judged?.kind === "answer-judged" && judged.kept === "sure" && judged.tokens >= 4);
    assert.ok(judged.meanLogprob < -0.25 && judged.meanLogprob > -0.5);
  });

  test("gives the next model's where it is not, from the beginning, in one stream", async () => {
    const { rig: now, client } = await started(cascade(ALWAYS, {}, 4));
    const text = await alone(client, "large", "hi there");
    assert.deepEqual(await chat(client, "hi there"), { model: "large", text, scored: 0 });
    assert.deepEqual(counts(now), { escalated: 1 });
    assert.equal(now.gateway.shared.judges!.desk.escalationsInFlight, 0);
    assert.equal(now.gateway.shared.judges!.desk.heldBytes, 0);
    const [summary] = now.summaries.slice(-1);
    assert.deepEqual([summary!.model, summary!.attempts, summary!.endpoint], ["large", 2, "b"]);
  });

  test("the same for answers in one piece, of chats and of completions", async () => {
    const { client } = await started(cascade(ALWAYS));
    const messages = [{ role: "user" as const, content: "hi" }];
    const body = { messages, temperature: 0, max_completion_tokens: 8 };
    const answer = async (model: string) => (await client.chat.completions.create({ ...body, model })).choices[0]!;
    assert.deepEqual(await answer("assistant"), await answer("large"));
    const complete = async (model: string) =>
      (await client.completions.create({ model, prompt: "hi", temperature: 0, max_tokens: 8 })).choices[0]!;
    assert.deepEqual(await complete("assistant"), await complete("large"));
    const sure = await started(cascade(NEVER));
    const kept = await sure.client.chat.completions.create({ ...body, model: "assistant" });
    assert.deepEqual([kept.model, kept.choices[0]!.logprobs], ["small", null]);
    const text = await sure.client.completions.create({ model: "assistant", prompt: "hi", max_tokens: 8 });
    assert.deepEqual([text.model, text.choices[0]!.logprobs], ["small", null]);
  });

  test("a client that asks for log-probabilities has them", async () => {
    const { client } = await started(cascade(NEVER, {}, 4));
    assert.equal((await chat(client, "hi there", { logprobs: true })).scored, 16);
  });

  test("each answer is weighed by itself, and a share of them is given up", async () => {
    const { rig: now, client } = await started(cascade(MIDDLE, {}, 8));
    const models = await Promise.all(Array.from({ length: 24 }, async (_, i) => (await chat(client, `q ${i}`)).model));
    const large = models.filter((model) => model === "large").length;
    assert.ok(large > 0 && large < 24, `${large} of 24`);
    assert.deepEqual(counts(now), { escalated: large, sure: 24 - large });
    for (const input of now.inputs) {
      if (input.kind === "answer-judged") assert.ok(input.meanLogprob >= MIDDLE);
      if (input.kind === "request-escalated") assert.ok(input.meanLogprob < MIDDLE);
    }
    assert.deepEqual(replayed(now.inputs), now.decisions);
  });

  test("what is unsure is kept where there is no room: of escalations, or of bytes", async () => {
    const full = await started(cascade(ALWAYS, { escalationsInFlightMax: 1 }, 4));
    full.rig.gateway.shared.judges!.desk.began();
    assert.equal((await chat(full.client, "hi")).model, "small");
    assert.deepEqual(counts(full.rig), { full: 1 });
    full.rig.gateway.shared.judges!.desk.ended();
    const held = await started(cascade(ALWAYS, { heldBytesMax: 600 }, 16));
    assert.equal((await chat(held.client, "hi")).model, "small");
    assert.deepEqual(counts(held.rig), { "held-bytes": 1 });
    const each = await started(cascade(ALWAYS, {}, 16), { limits: { holdBytesMax: 600 } });
    assert.equal((await chat(each.client, "hi")).model, "small");
    assert.deepEqual(counts(each.rig), { "held-bytes": 1 });
  });

  test("and where the next model has no endpoint", async () => {
    const { rig: now, client } = await started(cascade(ALWAYS, {}, 4));
    now.intake.accept({ kind: "endpoint-cordoned", at: now.inputs.at(-1)!.at, endpoint: "b" });
    assert.equal((await chat(client, "hi")).model, "small");
    assert.deepEqual(counts(now), { "no-endpoint": 1 });
  });

  test("what cannot be judged goes to the last model", async () => {
    const { rig: now, client } = await started(cascade(NEVER));
    const messages = [{ role: "user" as const, content: "hi" }];
    const two = await client.chat.completions.create({ model: "assistant", messages, n: 2, max_completion_tokens: 4 });
    assert.deepEqual([two.model, two.choices.length], ["large", 2]);
    assert.deepEqual(counts(now), { unjudged: 1 });
  });

  test("an engine that breaks while its answer is judged, or behind it, is retried as ever", async () => {
    const { rig: now, client } = await started(cascade(ALWAYS, {}, 4), { limits: { attemptsMax: 2 } });
    await assert.rejects(chat(client, "hi", {}, { "x-emulator-fault": "cut=2" }));
    assert.ok(now.inputs.some(({ kind }) => kind === "attempt-failed"));
    assert.equal((await chat(client, "hi")).model, "large");
  });

  test("a prompt whose tokens take time is waited for, and the client may leave meanwhile", async () => {
    const slow: Tokenizer = {
      ...WORD_TOKENIZER,
      encode: async (prompt) => {
        await setTimeout(20);
        return encodeWords(prompt);
      },
    };
    const tokenizer = (model: string) => (model === "large" ? slow : WORD_TOKENIZER);
    const { rig: now, client } = await started(cascade(ALWAYS, {}, 2), { tokenizer });
    const text = await alone(client, "large", "hi there");
    assert.deepEqual(await chat(client, "hi there"), { model: "large", text, scored: 0 });
    assert.deepEqual(counts(now), { escalated: 1 });
  });

  test("its name is listed beside the models", async () => {
    const { client } = await started(cascade(NEVER));
    const names: string[] = [];
    for await (const { id } of client.models.list()) names.push(id);
    assert.deepEqual(names, ["small", "large", "assistant"]);
    assert.equal((await client.models.retrieve("assistant")).id, "assistant");
  });

  test("a refusal of the first model's engine reaches the client as it is", async () => {
    const { rig: now } = await started(cascade(ALWAYS));
    const got = await ask(now.url, { ...CHAT, model: "assistant", temperature: -1 });
    assert.equal(got.status, 400);
  });
});

function replayed(inputs: readonly Input[]): readonly Decision[] {
  const router = new Router({
    seed: 1,
    profiles: { default: LOWEST_ID_FIRST },
    defaultProfile: "default",
    index: new ApproximateIndex(),
    blockTokens: 4,
    staleAfterMicros: 1_000_000,
    breaker: NEVER_OPEN,
  });
  return inputs.map((input) => router.accept(input)).filter((decision) => decision !== undefined);
}
