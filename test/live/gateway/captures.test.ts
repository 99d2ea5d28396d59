import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { type Capture, capture, captureNames } from "./captures.ts";
import { NEVER_OPEN, type Rig, ask, errorOf, startRig } from "./rig.ts";
import { type Reply, jsonReply } from "./stub-engine.ts";

/** Answers that speak of an engine that cannot serve; the request goes elsewhere. */
const RETRIED: Readonly<Record<string, string>> = {
  err_503_queue_full: "saturated",
  err_503_queue_full_stream: "saturated",
  err_503_queued_tokens: "saturated",
  "engine_crash_nonstream.tail": "status",
  request_engine_dead: "status",
  sigterm_shutdown_timeout_20_new_request_ids_while_draining: "draining",
  sigterm_shutdown_timeout_20_new_request_while_draining: "draining",
  sigterm_shutdown_timeout_20_tokenize_while_draining: "draining",
};

/** Streams of a dying engine: the client gets what came, and an error instead of an end. */
const CUT = new Set(["engine_crash_chat_stream.tail", "engine_crash_stream.tail"]);

/** A request of the same kind that the gateway itself finds no fault with. */
function requestFor({ method, path, requestBody }: Capture): { path: string; body: string } {
  if (method !== "POST" || !path.startsWith("/v1/")) return { path: "/v1/embeddings", body: '{"model":"tiny"}' };
  let stream = false;
  try {
    stream = (JSON.parse(requestBody.toString()) as { stream?: unknown }).stream === true;
  } catch {
    // A malformed request was answered with JSON.
  }
  const route = path.replace(/\/$/, "");
  if (route === "/v1/completions") return { path: route, body: JSON.stringify({ model: "tiny", prompt: "x", stream }) };
  const messages = [{ role: "user", content: "x" }];
  return { path: route, body: JSON.stringify({ model: "tiny", messages, input: "x", stream }) };
}

describe("what vLLM 0.32 sent", () => {
  let rig: Rig;
  let current: Capture;
  before(async () => {
    const fromA: Reply = (_request, socket) => {
      socket.write(current.response);
      if (/connection: close/i.test(current.response.toString("latin1", 0, 500))) socket.end();
    };
    const fromB: Reply = (_request, socket) => socket.write(jsonReply(200, { object: "from b" }));
    rig = await startRig([fromA, fromB], { breaker: NEVER_OPEN });
  });
  after(() => rig.close());

  for (const name of captureNames()) {
    current = capture(name);
    if (current.method === "HEAD") continue;
    const fault = RETRIED[name];
    const expected = CUT.has(name) ? "breaks openly" : fault === undefined ? "passes" : `is ${fault}`;
    test(`${name} ${expected}`, async () => {
      current = capture(name);
      const { path, body } = requestFor(current);
      const got = await ask(rig.url, body, { path });
      if (CUT.has(name)) {
        assert.ok(current.body.toString().startsWith(got.body));
        assert.ok(!got.body.includes("[DONE]"));
        assert.match(got.body, /"EngineCore encountered an issue[^\n]*\n\n$/);
      } else if (fault === undefined) {
        assert.equal(got.status, current.status);
        const detail = /^\{"detail":"([^"]+)"\}$/.exec(current.body.toString())?.[1];
        if (detail === undefined) assert.equal(got.body, current.body.toString());
        else assert.equal(errorOf(got).message, `The engines of this model do not serve this path (${detail}).`);
        assert.equal(got.headers["x-gnomon-endpoint"], "a");
        assert.match(got.headers["content-type"] ?? "", new RegExp(`^${current.contentType}`));
        assert.equal(got.headers["server"], "uvicorn");
      } else {
        assert.equal(got.body, '{"object":"from b"}');
        assert.equal(rig.retried.at(-1), fault);
      }
    });
  }
});
