import assert from "node:assert/strict";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";

import { CHAT, type Rig, startRig } from "./rig.ts";
import { STREAM_END, STREAM_HEAD, chatAnswer, jsonReply, tokenChunk } from "./stub-engine.ts";

const BODY = JSON.stringify(CHAT);

function post(body: string, headers = "host: x\r\n", declared = Buffer.byteLength(body)): string {
  const line = "POST /v1/chat/completions HTTP/1.1\r\n";
  return `${line}${headers}content-type: application/json\r\ncontent-length: ${declared}\r\n\r\n${body}`;
}

/** Everything that comes back on one connection until `enough` of it is there or it ends. */
function talk(url: string, bytes: string, enough: RegExp, then?: { readonly after: RegExp; readonly bytes: string }) {
  return new Promise<string>((resolve) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    let got = "";
    let told = false;
    const done = (): void => {
      socket.destroy();
      resolve(got);
    };
    socket.on("error", () => {});
    socket.on("close", done);
    socket.on("data", (data) => {
      got += String(data);
      if (then !== undefined && !told && then.after.test(got)) {
        told = true;
        socket.write(then.bytes);
      } else if (enough.test(got)) done();
    });
    socket.write(bytes);
  });
}

describe("what is wrong with HTTP itself", () => {
  let rig: Rig;
  before(async () => {
    rig = await startRig([(_r, socket) => socket.write(jsonReply(200, chatAnswer("ok")))], {
      limits: { bodyBytesMax: 4096 },
    });
  });
  after(() => rig.close());

  test("a tunnel is refused in words", async () => {
    const got = await talk(rig.url, "CONNECT elsewhere:443 HTTP/1.1\r\nhost: x\r\n\r\n", /"code":405/);
    assert.match(got, /^HTTP\/1\.1 405 .*connection: close.*no tunnels/s);
  });

  test("a request without a host is refused in words", async () => {
    const got = await talk(rig.url, post(BODY, ""), /"code":400/);
    assert.match(got, /^HTTP\/1\.1 400 .*host or target is malformed/s);
  });

  test("an unknown expectation is passed over", async () => {
    const got = await talk(rig.url, post(BODY, "host: x\r\nexpect: tea\r\n"), /\}$/);
    assert.match(got, /^HTTP\/1\.1 200 /);
  });

  test("a client that asks first is asked to go on", async () => {
    const got = await talk(rig.url, post("", "host: x\r\nexpect: 100-continue\r\n", BODY.length), /\}$/, {
      after: /^HTTP\/1\.1 100 Continue\r\n\r\n/,
      bytes: BODY,
    });
    assert.match(got, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /);
  });

  test("but not to send a body that is too large", async () => {
    const got = await talk(rig.url, post("", "host: x\r\nexpect: 100-continue\r\n", 5000), /\}$/);
    assert.match(got, /^HTTP\/1\.1 413 /);
  });

  test("a client that leaves is none of those that sent no HTTP", async () => {
    const { malformedHttp } = rig.gateway.counters;
    for (const bytes of [post(BODY), post("", "host: x\r\n", 4_000), "POST /v1/chat"])
      for (const leave of ["resetAndDestroy", "destroy"] as const) {
        const socket = connect(Number(new URL(rig.url).port), "127.0.0.1");
        socket.write(bytes);
        await new Promise((resolve) => setTimeout(resolve, 30));
        socket[leave]();
      }
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(rig.gateway.counters.malformedHttp, malformedHttp);
    await talk(rig.url, "no HTTP\r\n\r\n", /\}$/);
    assert.equal(rig.gateway.counters.malformedHttp, malformedHttp + 1);
  });

  test("a body that breaks off in its framing is answered", async () => {
    const head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
    const got = await talk(rig.url, `${head}transfer-encoding: chunked\r\n\r\nZZ\r\n`, /"code":400/);
    assert.match(got, /^HTTP\/1\.1 400 .*well-formed/s);
  });
});

describe("a request that two parties could read in two ways", () => {
  const line = "POST /v1/chat/completions HTTP/1.1\r\n";
  const json = "content-type: application/json\r\n";
  const length = `content-length: ${BODY.length}\r\n`;
  const chunked = `${BODY.length.toString(16)}\r\n${BODY}\r\n0\r\n\r\n`;
  const shapes: Readonly<Record<string, string>> = {
    "two hosts": `${line}host: x\r\nHost: y\r\n${json}${length}\r\n${BODY}`,
    "the same host twice": `${line}host: x\r\nhost: x\r\n${json}${length}\r\n${BODY}`,
    "two hosts and a target with one": `POST http://x/v1/chat/completions HTTP/1.1\r\nhost: x\r\nhost: y\r\n${json}${length}\r\n${BODY}`,
    "two hosts in HTTP/1.0": `POST /v1/chat/completions HTTP/1.0\r\nhost: x\r\nhost: y\r\n${json}${length}\r\n${BODY}`,
    "two hosts for a page": "GET /healthz HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n",
    "two hosts for an engine's administration":
      "POST /sleep HTTP/1.1\r\nhost: x\r\nhost: y\r\ncontent-length: 0\r\n\r\n",
    "two lengths": `${line}host: x\r\n${json}${length}content-length: 4\r\n\r\n${BODY}`,
    "the same length twice": `${line}host: x\r\n${json}${length}${length}\r\n${BODY}`,
    "a list of lengths": `${line}host: x\r\n${json}content-length: ${BODY.length}, ${BODY.length}\r\n\r\n${BODY}`,
    "a length with a sign": `${line}host: x\r\n${json}content-length: +${BODY.length}\r\n\r\n${BODY}`,
    "a length in hexadecimal": `${line}host: x\r\n${json}content-length: 0x10\r\n\r\n${BODY}`,
    "a length and chunks": `${line}host: x\r\n${json}${length}transfer-encoding: chunked\r\n\r\n${chunked}`,
    "chunks and a length": `${line}host: x\r\n${json}transfer-encoding: chunked\r\n${length}\r\n${chunked}`,
    "another encoding": `${line}host: x\r\n${json}transfer-encoding: xchunked\r\n\r\n${chunked}`,
    "an encoding after chunks": `${line}host: x\r\n${json}transfer-encoding: chunked, identity\r\n\r\n${chunked}`,
    "chunks twice": `${line}host: x\r\n${json}transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n${chunked}`,
    "a space before the colon": `${line}host: x\r\n${json}transfer-encoding : chunked\r\n\r\n${chunked}`,
    "a folded line": `${line}host: x\r\n${json}x: y\r\n ${length}\r\n${BODY}`,
    "a line end without its first half": `${line}host: x\n${json}${length}\r\n${BODY}`,
    "a NUL in a value": `${line}host: x\r\nx: \0\r\n${json}${length}\r\n${BODY}`,
    "a chunk length with a sign": `${line}host: x\r\n${json}transfer-encoding: chunked\r\n\r\n+${chunked}`,
    "a chunk without its line end": `${line}host: x\r\n${json}transfer-encoding: chunked\r\n\r\n2\r\n{}3\r\n{} \r\n0\r\n\r\n`,
    "no version": `POST /v1/chat/completions\r\nhost: x\r\n${json}${length}\r\n${BODY}`,
  };

  for (const [shape, bytes] of Object.entries(shapes)) {
    test(`is refused, its connection ends, and no engine gets it: ${shape}`, async () => {
      const rig = await startRig([(_r, socket) => socket.write(jsonReply(200, chatAnswer("ok")))]);
      const smuggled = "GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n";
      const got = await talk(rig.url, bytes + smuggled, /never/);
      assert.match(got, /^(?:HTTP\/1\.1 400 .*connection: close|$)/is);
      assert.ok((got.match(/HTTP\/1\.1 \d/g) ?? []).length <= 1, "one answer at most");
      assert.equal(rig.engines[0]!.requests.length, 0);
      await rig.close();
    });
  }
});

describe("garbage behind a request", () => {
  test("does not land in its stream", async () => {
    const rig = await startRig([
      (_r, socket) => {
        socket.write(`${STREAM_HEAD}${tokenChunk("one")}`);
        setTimeout(() => socket.write(`${tokenChunk("two")}${STREAM_END}`), 300).unref();
      },
    ]);
    const stream = JSON.stringify({ ...CHAT, stream: true });
    const got = await talk(rig.url, post(stream), /two/, { after: /one/, bytes: "GARBAGE\r\n\r\n" });
    assert.match(got, /^HTTP\/1\.1 200 .*one/s);
    assert.doesNotMatch(got, /400 Bad Request/);
    await rig.close();
  });

  test("is not taken for its answer", async () => {
    const rig = await startRig([(_r, socket) => socket.write(jsonReply(200, chatAnswer("ok")))]);
    const got = await talk(rig.url, `${post(BODY)}GARBAGE\r\n\r\n`, /never/);
    assert.match(got, /^HTTP\/1\.1 200 .*connection: close/is);
    assert.equal((got.match(/HTTP\/1\.1 \d/g) ?? []).length, 1);
    assert.equal(rig.engines[0]!.requests.length, 1);
    await rig.close();
  });

  test("is answered once the answer is over", async () => {
    const rig = await startRig([(_r, socket) => socket.write(jsonReply(200, chatAnswer("ok")))]);
    const got = await talk(rig.url, post(BODY), /"code":400/, { after: /\}$/, bytes: "GARBAGE\r\n\r\n" });
    assert.match(got, /^HTTP\/1\.1 200 .*HTTP\/1\.1 400 .*well-formed/s);
    await rig.close();
  });
});

test("a request that comes too slowly is answered so, soon after the limit that was set", async () => {
  const rig = await startRig([], { limits: { headersMillisMax: 40, requestReadMillisMax: 80 } });
  const head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n";
  for (const begun of [head, `${head}content-type: application/json\r\ncontent-length: 100\r\n\r\n{`]) {
    const got = await talk(rig.url, begun, /"code":408/);
    assert.match(got, /^HTTP\/1\.1 408 .*did not arrive in time/s);
  }
  await rig.close();
});
