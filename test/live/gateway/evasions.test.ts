import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";

import { type Rig, startRig } from "./rig.ts";
import { type Reply, chatAnswer, jsonReply } from "./stub-engine.ts";

const OK: Reply = (_request, socket) => void socket.write(jsonReply(200, chatAnswer("ok")));
const CHAT_PATH = "/v1/chat/completions";
const PLAIN = '{"model":"tiny","messages":[{"role":"user","content":"hi"}]}';

/** A chat with more fields. */
const chat = (fields: string): string => PLAIN.replace(/\}$/, `,${fields}}`);
const head = (more: string, path: string, version: string): string =>
  `POST ${path} HTTP/${version}\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n${more}\r\n`;

function post(body: string | Buffer, more = "", path = CHAT_PATH, version = "1.1"): Buffer {
  const length = `content-length: ${Buffer.byteLength(body)}\r\n`;
  return Buffer.concat([Buffer.from(head(more + length, path, version)), Buffer.from(body)]);
}

const chunked = (body: string, trailers = ""): string =>
  `${body.length.toString(16)}\r\n${body}\r\n0\r\n${trailers}\r\n`;

describe("what clients may not ask of an engine, asked in another form", () => {
  let rig: Rig;
  before(async () => {
    rig = await startRig([OK]);
  });
  after(() => rig.close());

  function statusOf(bytes: string | Buffer): Promise<number> {
    return new Promise((resolve) => {
      let got = "";
      const socket = connect(Number(new URL(rig.url).port), "127.0.0.1", () => socket.write(bytes));
      socket.on("data", (data) => (got += data.toString("latin1")));
      socket.on("error", () => {});
      socket.on("close", () => resolve(Number([...got.matchAll(/HTTP\/1\.1 (\d{3})/g)].at(-1)?.[1])));
    });
  }

  const passed: Readonly<Record<string, string | Buffer>> = {
    "a field twice": post(chat('"priority":1,"priority":-9')),
    "an escaped name": post(chat('"pri\\u006frity":-9,"kv_transfer_p\\u0061rams":{"remote_host":"evil"}')),
    "a body behind a byte order mark": post(`\ufeff${chat('"priority":-9')}`),
    "arguments of vLLM's extensions": post(chat('"vllm_xargs":{"kv_transfer_params":{"remote_host":"evil"}}')),
    "a lone surrogate beside it": post(chat('"user":"\\ud800","priority":-9')),
    "a header in capitals": post(PLAIN, "X-VLLM-PRIORITY: -9\r\nX-Data-Parallel-Rank: 3\r\n"),
    "a header that Connection names": post(PLAIN, "connection: x-vllm-priority\r\nx-vllm-priority: -9\r\n"),
    "a trailer":
      head("transfer-encoding: chunked\r\ntrailer: x-vllm-priority\r\n", CHAT_PATH, "1.1") +
      chunked(PLAIN, "x-vllm-priority: -9\r\n"),
    "HTTP/1.0": post(chat('"priority":-9'), "", CHAT_PATH, "1.0"),
    "a target in absolute form": post(chat('"priority":-9'), "", `http://evil:1${CHAT_PATH}`),
    "an expectation twice": post(chat('"priority":-9'), "expect: 100-continue\r\nexpect: 100-continue\r\n"),
  };
  for (const [name, bytes] of Object.entries(passed)) {
    test(`${name}: the engine gets the request without it`, async () => {
      assert.equal(await statusOf(bytes), 200);
      const { path, headers, body } = rig.engines[0]!.requests.at(-1)!;
      assert.equal(path, CHAT_PATH);
      const text = body.toString() + JSON.stringify([...headers]);
      assert.doesNotMatch(text, /priority|kv_transfer|evil|parallel-rank/i);
    });
  }

  const refused: Readonly<Record<string, string | Buffer>> = {
    "a compressed body": post(chat('"priority":-9'), "content-encoding: gzip\r\n"),
    "a body in UTF-16": post(Buffer.from(chat('"priority":-9'), "utf16le")),
    "nesting that no reader takes": post(chat(`"metadata":${"[".repeat(100_000)}${"]".repeat(100_000)}`)),
    "deep nesting before a field": post(chat(`"metadata":${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)},"priority":-9`)),
    "bytes behind the body's JSON": post(`${PLAIN} {"priority":-9}`),
    "a model that is a list": post('{"model":["tiny"],"messages":[]}'),
    "chunks coded twice": `${head("transfer-encoding: chunked, chunked\r\n", CHAT_PATH, "1.1")}${chunked(PLAIN)}`,
    "a coding behind a vertical tab": `${head("transfer-encoding: \x0bchunked\r\n", CHAT_PATH, "1.1")}${chunked(PLAIN)}`,
    "two hosts in one field": "GET /healthz HTTP/1.1\r\nhost: a, b\r\nconnection: close\r\n\r\n",
    "2,500 headers": post(PLAIN, `${"a:b\r\n".repeat(2_500)}x-vllm-priority: -9\r\n`),
    "lines without a return": "GET /healthz HTTP/1.1\nhost: x\n\n",
    "a return in a header": "GET /healthz HTTP/1.1\r\nhost: x\r\nx: a\rb\r\n\r\n",
    "another version's preface": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ...Object.fromEntries(
      [
        "/sleep",
        "/%73leep",
        "//sleep",
        "/v1/../sleep",
        "http://a/sleep",
        `${CHAT_PATH}/..%2f..%2f..%2fsleep`,
        "/v1/load_lora_adapter",
        "/v1/responses/..%2f..%2fsleep%3f/cancel",
      ].map((path) => [path, post("{}", "", path)]),
    ),
  };
  for (const [name, bytes] of Object.entries(refused)) {
    test(`${name}: no engine gets it`, async () => {
      const asked = rig.engines[0]!.requests.length;
      const status = await statusOf(bytes);
      assert.ok(status >= 400 && status < 500, String(status));
      assert.equal(rig.engines[0]!.requests.length, asked);
    });
  }
});
