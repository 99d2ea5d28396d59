import assert from "node:assert/strict";
import { request as httpRequest } from "node:http";
import { describe, test } from "node:test";
import { createTokenizer } from "../tokenizer/create-tokenizer.ts";
import { type Rig, type RigOptions, ask, startRig } from "./rig.ts";
import { type Reply, STREAM_END, STREAM_HEAD, event, jsonReply } from "./stub-engine.ts";

const BLOCK = 4;
const tokenizer = await createTokenizer({ kind: "estimate", blockTokens: BLOCK, blockHash: "blake3", secret: "test" });
const EXACT: RigOptions = { tokenizer: () => tokenizer };

const PROMPT = Array.from({ length: 10 }, (_, i) => 100 + i);
const ANSWER = Array.from({ length: 9 }, (_, i) => 7_000 + i);
/** Prompt and answer but for its last token, which no engine computes. */
const COMPUTED = Math.floor((PROMPT.length + ANSWER.length - 1) / BLOCK) * BLOCK;
const PROMPT_ONLY = Math.floor(PROMPT.length / BLOCK) * BLOCK;

const usage = (completion_tokens: number) => ({ prompt_tokens: PROMPT.length, completion_tokens, total_tokens: 0 });

function whole(ids: readonly number[], more: object = {}): Reply {
  const choice = { index: 0, text: '"token_ids":[1,2,3]', finish_reason: "length", prompt_token_ids: PROMPT };
  const choices = [{ ...choice, token_ids: ids }];
  return (_request, socket) => socket.write(jsonReply(200, { choices, usage: usage(ids.length), ...more }));
}

function chunkOf(ids: readonly number[], first: boolean): string {
  const text = '\\"token_ids\\":[5] "token_ids":[6]';
  const prompt = first ? { prompt_token_ids: PROMPT } : {};
  return event({ choices: [{ index: 0, text, finish_reason: null, ...prompt, token_ids: ids }] });
}

/** Events of one token, of several, and one that comes in two pieces. */
function streamed(ids: readonly number[]): string {
  return `${STREAM_HEAD}${chunkOf(ids.slice(0, 1), true)}${chunkOf(ids.slice(1, 4), false)}${ids
    .slice(4)
    .map((id) => chunkOf([id], false))
    .join("")}${event({ choices: [], usage: usage(ids.length) })}${event("[DONE]")}${STREAM_END}`;
}

const stream: Reply = (_request, socket) => {
  const bytes = streamed(ANSWER);
  const middle = Math.floor(bytes.length / 2);
  socket.write(bytes.slice(0, middle));
  setImmediate(() => socket.write(bytes.slice(middle)));
};

async function askFor(rig: Rig, more: object): Promise<void> {
  const got = await ask(rig.url, { model: "tiny", prompt: PROMPT, ...more }, { path: "/v1/completions" });
  assert.equal(got.status, 200, got.body);
}

/** Tokens that the gateway expects the next turn to find. */
async function expectedNext(rig: Rig): Promise<number> {
  await askFor(rig, { prompt: [...PROMPT, ...ANSWER, 1, 2, 3, 4, 5] });
  const last = rig.decisions.at(-1)!;
  return last.kind === "routed" ? last.hitTokens : assert.fail(last.reason);
}

async function afterOne(reply: Reply, more: object, options: RigOptions = EXACT): Promise<number> {
  const rig = await startRig([reply], options);
  try {
    await askFor(rig, more);
    return await expectedNext(rig);
  } finally {
    await rig.close();
  }
}

describe("the next turn of a conversation", () => {
  test("finds the answer's blocks where its token ids came, whole or streamed", async () => {
    assert.equal(await afterOne(whole(ANSWER), { return_token_ids: true }), COMPUTED);
    assert.equal(await afterOne(stream, { return_token_ids: true, stream: true }), COMPUTED);
  });

  test("finds the prompt's alone where they did not, or do not continue the prompt", async () => {
    assert.equal(await afterOne(whole(ANSWER), {}), PROMPT_ONLY);
    assert.equal(await afterOne(whole(ANSWER), { return_token_ids: true, n: 2 }), PROMPT_ONLY);
    const cutPrompt = { return_token_ids: true, truncate_prompt_tokens: 8, truncation_side: "right" };
    assert.equal(await afterOne(whole(ANSWER), cutPrompt), 8);
  });

  test("is not led astray by an engine that keeps some ids to itself", async () => {
    const fewer = whole(ANSWER.toSpliced(2, 1), { usage: usage(ANSWER.length) });
    assert.equal(await afterOne(fewer, { return_token_ids: true }), PROMPT_ONLY);
  });

  test("finds what was kept of an answer that is longer than what is kept", async () => {
    const options = { ...EXACT, limits: { answerTokensKept: 3 } };
    const rig = await startRig([whole(ANSWER)], options);
    await askFor(rig, { return_token_ids: true });
    assert.equal(await expectedNext(rig), Math.floor((PROMPT.length + 3) / BLOCK) * BLOCK);
    assert.equal(rig.gateway.counters.answerTokensDropped, ANSWER.length - 3);
    await rig.close();
  });

  test("finds what a client that left had been sent", async () => {
    const begun = STREAM_HEAD + chunkOf(ANSWER.slice(0, 1), true) + chunkOf(ANSWER.slice(1), false);
    const rig = await startRig(
      [(request, socket) => void socket.write(request.index === 0 ? begun : jsonReply(200, {}))],
      EXACT,
    );
    const { hostname: host, port } = new URL(rig.url);
    const body = JSON.stringify({ model: "tiny", prompt: PROMPT, return_token_ids: true, stream: true });
    await new Promise<void>((resolve) => {
      const headers = { "content-type": "application/json" };
      const sent = httpRequest(
        { host, port, path: "/v1/completions", method: "POST", headers, agent: false },
        (response) => {
          let seen = "";
          response.on("error", () => {});
          response.on("data", (piece: Buffer) => {
            seen += piece.toString();
            if (seen.includes(String(ANSWER.at(-1)))) sent.destroy();
          });
        },
      );
      sent.on("error", () => {});
      sent.on("close", resolve);
      sent.end(body);
    });
    while (rig.summaries.length === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    assert.equal(rig.summaries[0]!.outcome, "aborted");
    assert.equal(await expectedNext(rig), COMPUTED);
    await rig.close();
  });

  test("finds at the endpoint of a retry what that one generated", async () => {
    const broken: Reply = (_request, socket) => socket.write(jsonReply(500, { error: { code: 500 } }));
    const rig = await startRig([broken, whole(ANSWER)], EXACT);
    await askFor(rig, { return_token_ids: true });
    assert.equal(await expectedNext(rig), rig.decisions.at(-1)!.kind === "routed" ? COMPUTED : 0);
    await rig.close();
  });
});

describe("requests that are no prefill, or no use of the cache", () => {
  test("counting tokens neither fills the index nor is charged as a prefill", async () => {
    const rig = await startRig([whole(ANSWER)], EXACT);
    const counted = { model: "tiny", messages: [{ role: "user", content: "word ".repeat(400) }] };
    const path = "/v1/messages/count_tokens";
    assert.equal((await ask(rig.url, counted, { path })).status, 200);
    const arrival = rig.inputs.findLast((input) => input.kind === "request-arrived");
    assert.ok(arrival?.kind === "request-arrived");
    assert.deepEqual([arrival.request.promptTokens, arrival.request.blocks.length], [0, 0]);
    await ask(rig.url, counted, { path: "/v1/messages" });
    const last = rig.decisions.at(-1)!;
    assert.equal(last.kind === "routed" && last.hitTokens, 0);
    await rig.close();
  });

  test("scoring the prompt expects no hit, and what it leaves behind is found", async () => {
    const scored: readonly [object, number][] = [
      [{ prompt_logprobs: 0 }, 0],
      [{ echo: true, logprobs: 1 }, 0],
      [{ echo: true }, PROMPT_ONLY],
      [{ logprobs: 1, prompt_logprobs: null }, PROMPT_ONLY],
    ];
    for (const [fields, expected] of scored) {
      const rig = await startRig([whole(ANSWER)], EXACT);
      await askFor(rig, {});
      await askFor(rig, fields);
      const last = rig.decisions.at(-1)!;
      assert.equal(last.kind === "routed" && last.hitTokens, expected, JSON.stringify(fields));
      assert.equal(await expectedNext(rig), PROMPT_ONLY);
      await rig.close();
    }
  });
});
