import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { describe, test, type TestContext } from "node:test";

import type { InferenceExchange } from "#live/inference/inference-exchange.ts";
import { CHAT, ask, errorOf, type Rig, type RigOptions, startRig } from "./rig.ts";
import { chatAnswer, jsonReply, type Reply, STREAM_END, STREAM_HEAD, roleChunk, tokenChunk } from "./stub-engine.ts";

const silent: Reply = () => {};
/** Some request's answer began, and is held. */
function isHeld({ gateway }: Rig): boolean {
  let held = false;
  gateway.shared.inFlight.each((member) => (held ||= (member as InferenceExchange).state.kind === "holding"));
  return held;
}
/** Its head comes before its prompt is computed. */
const held: Reply = (_r, s) => void s.write(STREAM_HEAD + roleChunk());
const begun: Reply = (_r, s) => void s.write(STREAM_HEAD + roleChunk() + tokenChunk("one"));

test("what has not ended as a drain's grace is over gets an answer that names why: 503, or an error event in its stream", async () => {
  const reply: Reply = (request, socket) => ([begun, held][request.index] ?? silent)(request, socket);
  const rig = await startRig([reply]);
  const stream = ask(rig.url, { ...CHAT, stream: true });
  while (!rig.kinds().includes("first-token")) await new Promise((resolve) => setTimeout(resolve, 1));
  const headOnly = ask(rig.url, { ...CHAT, stream: true });
  await rig.engines[0]!.asked(2);
  const waiting = ask(rig.url, CHAT);
  await rig.engines[0]!.asked(3);
  while (!isHeld(rig)) await new Promise((resolve) => setTimeout(resolve, 1));
  const { requestsCut } = await rig.gateway.close(20);
  assert.equal(requestsCut, 3);
  const [cut, unbegun, refused] = await Promise.all([stream, headOnly, waiting]);
  assert.deepEqual([unbegun.status, errorOf(unbegun).type], [503, "ServiceUnavailableError"]);
  assert.match(cut.body, /one.*"error"/s);
  assert.doesNotMatch(cut.body, /\[DONE\]/);
  assert.deepEqual(
    [refused.status, errorOf(refused).type, refused.headers["retry-after"]],
    [503, "ServiceUnavailableError", "1"],
  );
  const lines = rig.faults.map(({ kind, done }) => `${kind}: ${done.slice(0, 18)}`);
  assert.deepEqual(lines.toSorted(), [
    "answer-cut: the client got wha",
    "turned-away: its client got 503",
    "turned-away: its client got 503",
  ]);
  await rig.close();
});

/** A client of its own, with one connection, which sends what it is given and keeps all that comes. */
class RawClient {
  readonly socket: Socket;
  text = "";
  isEnded = false;

  constructor(url: string) {
    this.socket = connect({ host: "127.0.0.1", port: Number(new URL(url).port), noDelay: true });
    this.socket.setEncoding("latin1");
    this.socket.on("data", (piece: string) => (this.text += piece));
    this.socket.on("end", () => (this.isEnded = true));
    // A request that crosses the end of its connection is answered with a reset, which may overtake that end.
    this.socket.on("close", () => (this.isEnded = true));
    this.socket.on("error", () => {});
  }

  /** A chat request, or one without a body. */
  send(body: object | undefined, { line = "POST /v1/chat/completions HTTP/1.1", header = "" } = {}): void {
    const text = body === undefined ? "" : JSON.stringify(body);
    const length = body === undefined ? "" : `content-type: application/json\r\ncontent-length: ${text.length}\r\n`;
    this.socket.write(`${line}\r\nhost: x\r\n${length}${header}\r\n${text}`);
  }

  /** Heads of the answers so far. */
  get heads(): string[] {
    return this.text.match(/HTTP\/1\.1 \d{3} [\s\S]*?\r\n\r\n/g) ?? [];
  }

  get statuses(): string[] {
    return this.heads.map((head) => head.slice(9, 12));
  }
}

/** Longer than any test. */
const LONG_MILLIS = 600_000;
const whole: Reply = (_r, s) => void s.write(jsonReply(200, chatAnswer("one")));
const announcesEnd = (head: string): boolean => /^connection: close\r$/im.test(head);

async function until(is: () => boolean): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!is()) {
    assert.ok(performance.now() < deadline, `never happened: ${is.toString()}`);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

/** A gateway with one engine, and clients whose connections are kept by the gateway so far. */
async function started(
  t: TestContext,
  reply: Reply,
  options: RigOptions = {},
): Promise<{ rig: Rig; client: () => RawClient }> {
  const rig = await startRig([reply], options);
  t.after(() => rig.engines[0]!.kill());
  return { rig, client: () => new RawClient(rig.url) };
}

describe("a gateway that leaves", () => {
  test("announces the end of the connection in every answer of the notice, and serves it", async (t) => {
    const { rig, client } = await started(t, whole);
    const clients = Array.from({ length: 5 }, client);
    for (const one of clients) one.send(CHAT);
    await until(() => clients.every(({ statuses }) => statuses.length === 1));
    assert.ok(clients.every(({ heads }) => !announcesEnd(heads[0]!)));
    const closed = rig.gateway.close(60_000, 200, LONG_MILLIS);
    const [chat, bad, page, stored, missing] = clients;
    chat!.send(CHAT);
    bad!.send({ ...CHAT, model: "nobody" });
    page!.send(undefined, { line: "GET /v1/models HTTP/1.1" });
    stored!.send(undefined, { line: "GET /v1/responses/resp_1 HTTP/1.1" });
    missing!.send(undefined, { line: "GET /nothing HTTP/1.1" });
    await until(() => clients.every(({ statuses }) => statuses.length === 2));
    assert.deepEqual(
      clients.map(({ statuses }) => statuses[1]),
      ["200", "404", "200", "200", "404"],
    );
    for (const { heads } of clients) assert.ok(announcesEnd(heads[1] ?? ""), heads[1] ?? "");
    assert.ok(clients.every(({ isEnded }) => !isEnded));
    for (const { socket } of clients) socket.destroy();
    await closed;
    assert.equal(rig.router.inFlight, 0);
  });

  test("a stream that ends after the notice leaves its connection open for the next request, which is served and announces the end", async (t) => {
    let finish = (): void => {};
    const { rig, client } = await started(t, (request, socket) => {
      if (request.index > 0) return whole(request, socket);
      begun(request, socket);
      finish = () => void socket.write(tokenChunk("two", "stop") + "e\r\ndata: [DONE]\n\n\r\n" + STREAM_END);
    });
    const [streams, waits] = [client(), client()];
    streams.send({ ...CHAT, stream: true });
    await until(() => streams.text.includes("one"));
    const closed = rig.gateway.close(60_000, 20, LONG_MILLIS);
    await until(() => rig.gateway.shared.phase === "draining");
    finish();
    await until(() => streams.text.includes("[DONE]"));
    streams.send(CHAT);
    await until(() => streams.statuses.length === 2);
    assert.deepEqual(streams.statuses, ["200", "200"]);
    assert.ok(announcesEnd(streams.heads[1] ?? ""));
    assert.ok(!streams.isEnded, "a client may take no notice, and has its next request on the way already");
    streams.send(CHAT);
    waits.send(CHAT);
    await until(() => streams.statuses.length === 3 && waits.statuses.length === 1);
    assert.deepEqual([streams.statuses[2], waits.statuses[0]], ["200", "200"], "both came before the notice was over");
    assert.ok(!streams.isEnded && !waits.isEnded);
    for (const { socket } of [streams, waits]) socket.destroy();
    await closed;
    assert.equal(rig.summaries.length, 4);
  });

  test("ends connections on which nothing ever comes, and refuses inference on those that come after the notice", async (t) => {
    let finish = (): void => {};
    const { rig, client } = await started(t, (_request, socket) => {
      finish = () => void socket.write(jsonReply(200, chatAnswer("one")));
    });
    const [idle, waits] = [client(), client()];
    waits.send(CHAT);
    await rig.engines[0]!.asked(1);
    const closed = rig.gateway.close(60_000, 200, 20);
    let ended = "";
    idle.socket.once("end", () => (ended = rig.gateway.shared.phase));
    await until(() => idle.isEnded);
    assert.equal(ended, "draining", "in the notice it may be asked on still");
    assert.equal(idle.text, "");
    const late = client();
    late.send(CHAT);
    await until(() => late.statuses.length === 1);
    assert.equal(late.statuses[0], "503");
    assert.ok(announcesEnd(late.heads[0] ?? ""));
    const page = client();
    page.send(undefined, { line: "GET /v1/models HTTP/1.1" });
    await until(() => page.statuses[0] === "200");
    finish();
    await until(() => waits.statuses[0] === "200");
    await closed;
  });

  test("requests that were sent one behind the other are all answered", async (t) => {
    const { rig, client } = await started(t, whole);
    const one = client();
    one.send(CHAT);
    await until(() => one.statuses.length === 1);
    const closed = rig.gateway.close(60_000, 50, LONG_MILLIS);
    for (let i = 0; i < 3; i++) one.send(CHAT);
    await until(() => one.statuses.length === 4);
    assert.deepEqual(new Set(one.statuses), new Set(["200"]));
    one.socket.destroy();
    await closed;
  });

  test("ends a connection with its answer where the client asked for that, or reads until the end", async (t) => {
    const { rig, client } = await started(t, whole);
    const [keeps, asks, old] = [client(), client(), client()];
    for (const one of [keeps, asks, old]) one.send(CHAT);
    await until(() => [keeps, asks, old].every(({ statuses }) => statuses.length === 1));
    const closed = rig.gateway.close(60_000, 0, LONG_MILLIS);
    asks.send(CHAT, { header: "connection: close\r\n" });
    old.send(CHAT, { line: "POST /v1/chat/completions HTTP/1.0" });
    await until(() => asks.isEnded && old.isEnded);
    assert.deepEqual(
      [asks.statuses, old.statuses],
      [
        ["200", "200"],
        ["200", "200"],
      ],
    );
    assert.ok(!keeps.isEnded, "something may be on the way");
    keeps.socket.destroy();
    await closed;
  });

  test("a client that takes no notice and never pauses keeps it no longer than its grace, and loses no answer", async (t) => {
    const { rig, client } = await started(t, whole);
    const one = client();
    let sent = 0;
    const next = (): void => {
      if (one.statuses.length === sent && !one.isEnded) {
        sent++;
        one.send(CHAT);
      }
    };
    one.socket.on("data", next);
    next();
    await until(() => sent > 2);
    await rig.gateway.close(1_000, 50);
    await until(() => one.isEnded);
    assert.ok(sent - one.statuses.length <= 1, "what it sent after the end of the connection");
    assert.deepEqual(new Set(one.statuses), new Set(["200"]));
    assert.equal(rig.summaries.filter(({ outcome }) => outcome !== "ok").length, 0);
  });
});
