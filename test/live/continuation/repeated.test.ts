import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import type { Emulator } from "#emulator/server.ts";

import { startAs } from "../../emulator/captures.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import { type Got, LOWEST_ID_FIRST, NEVER_OPEN, type Rig, type RigOptions, ask, startRig } from "../gateway/rig.ts";
import { STREAM_END, STREAM_HEAD, event, roleChunk } from "../gateway/stub-engine.ts";

const MESSAGES = [{ role: "user", content: "Is it warm in Rome?" }];
const PARAMETERS = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
  required: ["city", "days"],
};
const TOOL = { type: "function", function: { name: "get_weather", description: "Weather", parameters: PARAMETERS } };
const GREEDY = { model: "tiny", stream: true, temperature: 0 };
const CHAT = { ...GREEDY, messages: MESSAGES, max_tokens: 24, stream_options: { include_usage: true } };
const SCHEMA = { type: "json_schema", json_schema: { name: "weather", schema: PARAMETERS } };

/** What an agent asks for; the same of another engine is the same answer. */
const ASKED: readonly (readonly [name: string, path: string, body: object])[] = [
  ["a tool that is required", "/v1/chat/completions", { ...CHAT, tools: [TOOL], tool_choice: "required" }],
  ["tools that the model may call", "/v1/chat/completions", { ...CHAT, tools: [TOOL] }],
  ["structured output", "/v1/chat/completions", { ...CHAT, response_format: SCHEMA }],
  ["a seed", "/v1/chat/completions", { ...CHAT, temperature: 1, seed: 7 }],
  ["penalties, without counts", "/v1/chat/completions", { ...CHAT, presence_penalty: 1, stream_options: undefined }],
  ["a structured completion", "/v1/completions", { ...GREEDY, prompt: "x", structured_outputs: { regex: "[ab]+" } }],
  ["log-probabilities", "/v1/chat/completions", { ...CHAT, logprobs: true, top_logprobs: 2 }],
  ["log-probabilities of a completion", "/v1/completions", { ...GREEDY, prompt: "x", max_tokens: 24, logprobs: 2 }],
  ["messages", "/v1/messages", { ...GREEDY, messages: MESSAGES, max_tokens: 24 }],
  ["responses", "/v1/responses", { ...GREEDY, input: "Is it warm in Rome?", max_output_tokens: 24 }],
];

interface Choice {
  readonly delta: { readonly content?: string };
  readonly logprobs?: { readonly content: readonly { readonly token: string; readonly logprob: number }[] } | null;
}

/** Every fault is mended, however many there were before. */
const UNBOUNDED = { retryRatio: 1, retryBurst: 1_000 };
const FAULTS = ["cut=1", "cut=4", "cut=9", "truncate=12", "error=5", "abort=7"];

function options(emulators: readonly Emulator[]): RigOptions {
  const urls = emulators.map(({ url }) => url);
  return {
    urls,
    breaker: NEVER_OPEN,
    stages: { clients: { continueStreams: true } },
    requestUsage: true,
    limits: UNBOUNDED,
  };
}

/** The events of a stream, with what each engine makes up in place of ids and times called by the order in which it came. */
function eventsOf({ body }: Got): string[] {
  const names = new Map<string, string>();
  const named = body.replaceAll(/"[a-z-]+[-_][0-9a-f-]{8,}"/g, (id) => {
    if (!names.has(id)) names.set(id, `"id ${names.size}"`);
    return names.get(id)!;
  });
  return named
    .replaceAll(/"created(_at)?":\d+/g, '"created":0')
    .replaceAll(/"(cached_tokens|created_cache_tokens|cache_\w+_tokens|input_tokens)":\d+/g, '"$1":0')
    .split("\n\n")
    .filter((event) => event !== "");
}

describe("a stream without ids to go on behind, where its engine breaks", () => {
  let emulators: Emulator[];
  let rig: Rig;
  before(async () => {
    const options = { enableAutoToolChoice: true };
    emulators = [
      await startAs("18101", { ...options, faults: true }),
      await startAs("18101", { ...options, faults: false }),
    ];
    const urls = emulators.map(({ url }) => url);
    rig = await startRig([], {
      urls,
      breaker: NEVER_OPEN,
      stages: { clients: { continueStreams: true } },
      requestUsage: true,
      limits: UNBOUNDED,
    });
  });
  after(async () => {
    await rig.close();
    for (const emulator of emulators) await emulator.close();
  });

  for (const [name, path, body] of ASKED) {
    test(`${name}: its client sees one stream, as if nothing had been`, async () => {
      const whole = eventsOf(await ask(rig.url, body, { path }));
      assert.ok(whole.length > 8, whole.join("\n"));
      for (const fault of FAULTS) {
        // vLLM calls a response complete that it aborted, which shows by its shutting down, and here it does not.
        if (path === "/v1/responses" && fault.startsWith("abort")) continue;
        const before = rig.gateway.counters.cuts;
        const got = await ask(rig.url, body, { path, headers: { "x-emulator-fault": fault } });
        assert.deepEqual(eventsOf(got), whole, fault);
        assert.equal(rig.gateway.counters.cuts, before, fault);
      }
    });
  }

  test("a sampled one goes on where the gateway may give it a seed, and is cut where it may not", async () => {
    const body = { ...CHAT, temperature: 1, tools: [TOOL] };
    const headers = { "x-emulator-fault": "cut=9" };
    const { counters } = rig.gateway;
    const cut = await ask(rig.url, body, { headers });
    assert.match(cut.body, /incomplete/);
    assert.equal(counters.continuationsDenied["tools"], 1);
    const seeded = await startRig([], {
      ...options(emulators),
      stages: { clients: { continueStreams: true, seedStreams: true } },
    });
    try {
      const got = await ask(seeded.url, body, { headers });
      assert.match(got.body, /"finish_reason":"(?:length|tool_calls|stop)"[^]*\[DONE\]\n\n$/);
      assert.deepEqual(seeded.gateway.counters.continuations, { cut: 1 });
    } finally {
      await seeded.close();
    }
  });

  test("each log-probability comes once, however the engines cut their answers into events", async () => {
    const TOKENS = ["one", " two", " three", " four", " five"];
    /** Events of so many tokens each; text may come behind its tokens. */
    const stream = (cuts: readonly number[], late: number): string => {
      const events: string[] = [];
      let [at, sent] = [0, 0];
      for (const count of cuts) {
        const tokens = TOKENS.slice(at, at + count);
        at += tokens.length;
        const to = at === TOKENS.length ? at : Math.max(sent, at - late);
        const content = tokens.map((token, i) => ({ token, logprob: -1 - (at - tokens.length + i), top_logprobs: [] }));
        const choice = { index: 0, delta: { content: TOKENS.slice(sent, to).join("") }, logprobs: { content } };
        sent = to;
        events.push(event({ id: "c", choices: [{ ...choice, finish_reason: null }] }));
      }
      return STREAM_HEAD + roleChunk() + events.join("");
    };
    const end = event({ id: "c", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }) + event("[DONE]");
    for (const first of [[1, 1], [3], [1, 2, 1]])
      for (const second of [[1, 1, 1, 1, 1], [5], [2, 3], [3, 1, 1], [4, 1]])
        for (const late of [0, 1, 2]) {
          const two = await startRig(
            [
              (_r, socket) => void socket.end(stream(first, late)),
              (_r, socket) => void socket.write(stream(second, 0) + end + STREAM_END),
            ],
            { stages: { clients: { continueStreams: true } }, breaker: NEVER_OPEN },
          );
          const { body } = await ask(two.url, { ...CHAT, logprobs: true });
          await two.close();
          const choices = [...body.matchAll(/^data: (\{.*\})$/gm)].flatMap(
            ([, data]) => (JSON.parse(data!) as { choices: Choice[] }).choices,
          );
          const name = JSON.stringify({ first, second, late });
          assert.equal(choices.map(({ delta }) => delta.content ?? "").join(""), TOKENS.join(""), name);
          const logprobs = choices.flatMap((one) => one.logprobs?.content ?? []);
          assert.deepEqual(
            logprobs.map(({ token, logprob }) => [token, logprob]),
            TOKENS.map((token, i) => [token, -1 - i]),
            name,
          );
          assert.ok(body.endsWith("data: [DONE]\n\n"), name);
        }
  });

  test("one that another engine makes otherwise is cut with an error, and the reason is counted", async () => {
    const stream = (text: string, end: string): string => {
      const delta = event({ id: "c", choices: [{ index: 0, delta: { content: text }, finish_reason: null }] });
      return STREAM_HEAD + roleChunk() + delta + end;
    };
    const other = event({ id: "d", choices: [{ index: 0, delta: { content: "!" }, finish_reason: "stop" }] });
    const whole = event("[DONE]") + STREAM_END;
    for (const again of ["one hundred", "on", ""]) {
      const two = await startRig(
        [
          (_r, socket) => void socket.end(stream("one thousand", "")),
          (_r, socket) => void socket.write(stream(again, other + whole)),
        ],
        { stages: { clients: { continueStreams: true } }, breaker: NEVER_OPEN },
      );
      const { body } = await ask(two.url, { ...CHAT, tools: [TOOL] });
      await two.close();
      assert.ok(body.includes("one thousand") && !body.includes("!") && !body.includes("[DONE]"), body);
      assert.match(body, /"error"/);
      assert.ok(two.gateway.counters.continuationsDenied["diverged"]! > 0);
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
  });
});
