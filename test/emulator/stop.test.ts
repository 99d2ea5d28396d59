import assert from "node:assert/strict";
import { test } from "node:test";
import { readCaptures, startAs } from "./captures.ts";
import { eventData, parseResponse, type HttpMessage } from "./http-message.ts";
import { isWhole, requestBytes, sendRaw } from "./raw-client.ts";
import { shapeOf, streamShape } from "./shape.ts";

const REAL_STOP = " elgg";
const REAL_TOKEN = 116_865;

interface Whole {
  readonly choices: readonly {
    readonly message: { readonly content: string };
    readonly token_ids: readonly number[];
  }[];
}

test("captured stops give the captured shapes, with the emulator's own words in the place of the real model's", async () => {
  const emulator = await startAs("18101");
  try {
    for (const { name, request, response } of readCaptures()) {
      if (!/^chat_(stream_)?stop_(string|token)$/.test(name)) continue;
      const body = JSON.parse(request.subarray(request.indexOf("\r\n\r\n") + 4).toString()) as Record<string, unknown>;
      const plain = { ...body, stream: false, stop: null, stop_token_ids: null, return_token_ids: true };
      const send = async (given: unknown): Promise<HttpMessage> =>
        parseResponse(await sendRaw(emulator.port, requestBytes("POST", "/v1/chat/completions", given), isWhole));
      const whole = JSON.parse((await send(plain)).chunks[0] ?? "") as Whole;
      const own = whole.choices[0]?.message.content.slice(4, 8) ?? "";
      const token = whole.choices[0]?.token_ids[2] ?? 0;
      const text = JSON.stringify(body).replace(REAL_STOP, own).replace(String(REAL_TOKEN), String(token));
      const answer = await send(JSON.parse(text));
      const real = parseResponse(response);
      if (name.includes("stream")) {
        assert.deepEqual(streamShape(eventData(answer)), streamShape(eventData(real)), name);
      } else {
        assert.deepEqual(shapeOf(JSON.parse(answer.chunks[0] ?? "")), shapeOf(JSON.parse(real.chunks[0] ?? "")), name);
      }
    }
  } finally {
    await emulator.close();
  }
});
