import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Emulator } from "#emulator/server.ts";
import { readCaptures, startAs, type Capture } from "./captures.ts";
import { eventData, header, parseResponse, type HttpMessage } from "./http-message.ts";
import { isWhole, sendRaw } from "./raw-client.ts";
import { shapeOf, streamShape } from "./shape.ts";

/** Captures that are not replayed here, and why. */
const OUT_OF_SCOPE: readonly (readonly [RegExp, string])[] = [
  [/^metrics_|^auth_missing_metrics$/, "compared in metrics-page.test.ts"],
  [/^err_503_/, "need a full queue: compared in admission.test.ts"],
  [/^health_while_queue_full$/, "needs a full queue: compared in admission.test.ts"],
  [/^chat_(stream_)?stop_(string|token)$/, "name tokens of the real model: compared in stop.test.ts"],
  [/^(is_paused|is_sleeping|weight_info|pause|resume|is_paused_true|health_paused)$/, "development mode's routes"],
  [/^auth_missing_reset$/, "development mode's route"],
  [/kv_event_sources/, "the emulator publishes no KV events"],
  [/_dp2$|^scaleout_/, "data parallelism and scale-out, which the emulator does not have"],
  [/^systemone$/, "a route of its own kind, which no router reads"],
];

const ANSWERED_BY = ["18101", "18102", "18107", "18109"];

const captures = readCaptures();
const replayed = captures.filter(({ name }) => !OUT_OF_SCOPE.some(([pattern]) => pattern.test(name)));

test("every pattern that leaves captures out still names one", () => {
  for (const [pattern, reason] of OUT_OF_SCOPE) {
    assert.ok(
      captures.some(({ name }) => pattern.test(name)),
      `${String(pattern)}: ${reason}`,
    );
  }
});

for (const server of ANSWERED_BY) {
  describe(`the server that was captured on port ${server}`, () => {
    let emulator: Emulator;
    before(async () => {
      emulator = await startAs(server);
    });
    after(() => emulator.close());

    for (const capture of replayed.filter((one) => one.server === server)) {
      test(capture.name, async () => compare(capture, await replay(emulator, capture)));
    }
  });
}

async function replay(emulator: Emulator, capture: Capture): Promise<HttpMessage> {
  const head = capture.request.toString("latin1").startsWith("HEAD ");
  return parseResponse(await sendRaw(emulator.port, capture.request, (received) => isWhole(received, head)));
}

function compare(capture: Capture, answer: HttpMessage): void {
  const real = parseResponse(capture.response);
  assert.equal(answer.statusLine, real.statusLine);
  assert.deepEqual(answer.headers.map(comparable), real.headers.map(comparable));
  assert.equal(answer.complete, real.complete);
  const type = header(real, "content-type") ?? "";
  if (type.startsWith("text/event-stream")) compareStreams(capture.name, answer, real);
  else if (type === "application/json" && real.chunks[0] !== "") compareBodies(answer, real);
  else assert.deepEqual(answer.chunks, real.chunks);
}

/** Captured while the client was slow: the real server put all tokens into one event, together with the end. */
const MERGED = new Set(["chat_stream_logprobs"]);

function compareStreams(name: string, answer: HttpMessage, real: HttpMessage): void {
  const shapes = { ...streamShape(eventData(answer)) };
  const middle = (shape: string) => shape.includes('["finish_reason",null],["token_ids"');
  if (MERGED.has(name)) shapes["choice 0"] = shapes["choice 0"]?.filter((shape) => !middle(shape)) ?? [];
  assert.deepEqual(shapes, streamShape(eventData(real)));
  assert.equal(eventData(answer).at(-1), eventData(real).at(-1));
  // One chunk per event, each with its empty line.
  assert.ok(answer.chunks.every((chunk) => chunk.endsWith("\n\n") && chunk.split("\n\n").length === 2));
  const names = (message: HttpMessage) => message.chunks.map((chunk) => /^event: (.*)/.exec(chunk)?.[1] ?? "");
  const runs = (list: readonly string[]) => list.filter((name, index) => name !== list[index - 1]);
  assert.deepEqual(runs(names(answer)), runs(names(real)));
}

function compareBodies(answer: HttpMessage, real: HttpMessage): void {
  const [ours, theirs] = [answer.chunks[0] ?? "", real.chunks[0] ?? ""];
  if (real.status >= 300) {
    assert.equal(ours, theirs);
    return;
  }
  assert.deepEqual(shapeOf(JSON.parse(ours)), shapeOf(JSON.parse(theirs)));
}

/** A header without what changes from answer to answer. */
function comparable([name, value]: readonly [string, string]): readonly [string, string] {
  switch (name) {
    case "date":
      assert.match(value, /^\w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT$/);
      return [name, ""];
    case "content-length":
      return [name, value === "0" ? "0" : "n"];
    case "x-request-id":
      return [name, /^[0-9a-f]{32}$/.test(value) ? "generated" : value];
    case "location":
      return [name, value.replace(/:\d+\//, ":port/")];
    default:
      return [name, value];
  }
}
