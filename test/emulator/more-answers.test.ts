import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import type { Emulator } from "#emulator/server.ts";
import { startAs } from "./captures.ts";
import { parseResponse } from "./http-message.ts";
import { requestBytes, sendRaw } from "./raw-client.ts";
import { shapeOf, streamShape } from "./shape.ts";

interface Recorded {
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly status: string;
  readonly headers: readonly string[];
  readonly text: string;
}

const FILE = new URL("../golden/vllm-more/answers.jsonl", import.meta.url);

/** Records that are not compared, and why. */
const OUT_OF_SCOPE: readonly (readonly [RegExp, string])[] = [
  [/^eos/, "they bend the model by logit_bias, and the emulator has no logits"],
  [/^(json_schema|tool_(named|required)(_stream)?|tool_auto_usage_stream)$/, "the random model ran to max_tokens"],
];

/** Refusals of unions, which list every alternative of the union: status, type and code are compared. */
const UNIONS = /^(message_no_role|message_not_dict|message_role_number|part_unknown|format_bad)$/;

const records = readFileSync(FILE, "utf8")
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => JSON.parse(line) as Recorded);

describe("answers beyond the captures", () => {
  let emulator: Emulator;
  before(async () => {
    emulator = await startAs("18109", { enableRequestIdHeaders: true, enableAutoToolChoice: true });
  });
  after(() => emulator.close());

  for (const record of records.filter(({ name }) => !OUT_OF_SCOPE.some(([pattern]) => pattern.test(name)))) {
    test(record.name, async () => {
      const { method, path, body } = record;
      const bytes = requestBytes(method, path, body ?? undefined, ["Connection: close"]);
      const answer = parseResponse(await sendRaw(emulator.port, bytes, () => false));
      assert.equal(answer.statusLine, record.status);
      assert.deepEqual(
        answer.headers.map(([name]) => name),
        record.headers,
      );
      assert.equal(answer.complete, true);
      compare(record, answer.chunks.join(""));
    });
  }
});

test("every pattern that leaves records out still names one", () => {
  for (const [pattern, reason] of OUT_OF_SCOPE) {
    assert.ok(
      records.some(({ name }) => pattern.test(name)),
      `${String(pattern)}: ${reason}`,
    );
  }
});

function compare(record: Recorded, text: string): void {
  if (!record.text.startsWith("{")) {
    assert.deepEqual(streamOf(record, text), streamOf(record, record.text));
  } else if (record.status.includes(" 200 ")) {
    assert.deepEqual(shapeOf(JSON.parse(sameStop(record, text))), shapeOf(JSON.parse(sameStop(record, record.text))));
  } else if (UNIONS.test(record.name)) {
    const kind = (json: string) => {
      const { error } = JSON.parse(json) as { error: { type: string; code: number } };
      return [error.type, error.code];
    };
    assert.deepEqual(kind(text), kind(record.text));
  } else {
    assert.equal(text, record.text);
  }
}

function streamOf(record: Recorded, text: string): unknown {
  const events = sameStop(record, text).split("\n\n");
  const names = events.map((event) => /^event: (.*)/.exec(event)?.[1] ?? "");
  const data = events.map((event) => event.slice(event.indexOf("data: ") + 6)).filter((one) => one !== "");
  return [streamShape(data), names.filter((name, index) => name !== names[index - 1])];
}

/** The real model was stopped by its end token as a stop token; the emulator's end token needs no such help. */
function sameStop({ name }: Recorded, text: string): string {
  return name.startsWith("tool_named_done") ? text.replace('"stop_reason":128009', '"stop_reason":null') : text;
}
