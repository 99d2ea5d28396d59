import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import OpenAI from "openai";

import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import type { Emulator } from "#emulator/server.ts";

import { startAs } from "../../emulator/captures.ts";
import { LOWEST_ID_FIRST, NEVER_OPEN, type Rig, startRig } from "../gateway/rig.ts";

describe("the openai client, where the engine of its stream breaks", () => {
  let emulators: Emulator[];
  let rig: Rig;
  let client: OpenAI;
  before(async () => {
    // The first one alone has the faults that a header asks for.
    emulators = [await startAs("18101", { faults: true }), await startAs("18101", { faults: false })];
    const urls = emulators.map(({ url }) => url);
    rig = await startRig([], {
      urls,
      breaker: NEVER_OPEN,
      stages: { clients: { continueStreams: true } },
      requestUsage: true,
    });
    client = new OpenAI({ baseURL: `${rig.url}/v1`, apiKey: "sk-test", maxRetries: 0 });
  });
  after(async () => {
    await rig.close();
    for (const emulator of emulators) await emulator.close();
  });

  /** As far as the client goes, by the fault of the first engine. */
  async function chat(fault: string, more: Partial<OpenAI.ChatCompletionCreateParamsStreaming> = {}) {
    const stream = await client.chat.completions.create(
      {
        model: "tiny",
        messages: [{ role: "user", content: "hi there" }],
        stream: true,
        temperature: 0,
        max_completion_tokens: 24,
        stream_options: { include_usage: true },
        ...more,
      },
      { headers: { "x-emulator-fault": fault } },
    );
    const ids = new Set<string>();
    const ends: (string | null)[] = [];
    let text = "";
    let usage: OpenAI.CompletionUsage | null | undefined;
    for await (const chunk of stream) {
      ids.add(chunk.id);
      text += chunk.choices[0]?.delta.content ?? "";
      if ((chunk.choices[0]?.finish_reason ?? null) !== null) ends.push(chunk.choices[0]!.finish_reason);
      usage = chunk.usage ?? usage;
    }
    const { prompt_tokens: prompt, completion_tokens: output, prompt_tokens_details: details } = usage!;
    // Where only the counts were missing nobody states them.
    if (fault !== "cut=25") assert.ok(details!.cached_tokens! <= prompt);
    return { ids: ids.size, ends, text, prompt, output };
  }

  for (const fault of ["cut=1", "cut=9", "truncate=12", "error=5", "abort=7", "cut=25"]) {
    test(`sees one stream, by ${fault}`, async () => {
      const whole = await chat("");
      assert.deepEqual(await chat(fault), whole);
      assert.deepEqual([whole.ids, whole.ends, whole.output], [1, ["length"], 24]);
    });
  }

  test("sees stop strings met across the break", async () => {
    const { text } = await chat("");
    const stop = text.slice(17, 25);
    const whole = await chat("", { stop: [stop] });
    assert.deepEqual([whole.ends, whole.text], [["stop"], text.slice(0, text.indexOf(stop))]);
    for (const events of [4, 5, 6, 7]) assert.deepEqual(await chat(`cut=${events}`, { stop: [stop] }), whole);
  });

  test("gets an error where the rest would not be exact, and the reason is counted", async () => {
    const { continuationsDenied } = rig.gateway.counters;
    for (const [why, more] of [
      ["several", { n: 2 }],
      ["logprobs", { temperature: 1, logprobs: true }],
      ["penalties", { temperature: 1, presence_penalty: 1 }],
      ["structured", { temperature: 1, response_format: { type: "json_object" } }],
    ] as const) {
      const before = continuationsDenied[why] ?? 0;
      await assert.rejects(chat("cut=3", more), OpenAI.APIError, why);
      assert.equal(continuationsDenied[why], before + 1, why);
    }
  });

  test("and every decision is made again by a router that gets the same inputs", () => {
    const router = new Router({
      seed: 1,
      profiles: { default: LOWEST_ID_FIRST },
      defaultProfile: "default",
      index: new ApproximateIndex(),
      blockTokens: 4,
      staleAfterMicros: 1_000_000,
      breaker: NEVER_OPEN,
    });
    const again = rig.inputs.map((input) => router.accept(input)).filter((decision) => decision !== undefined);
    assert.ok(rig.inputs.some(({ kind }) => kind === "request-continued"));
    assert.deepEqual(again, rig.decisions);
    assert.equal(router.strayInputs, 0);
  });
});
