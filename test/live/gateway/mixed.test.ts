import assert from "node:assert/strict";
import { type Socket, connect } from "node:net";
import { test } from "node:test";

import { randomFor } from "#core/base/random.ts";

import { CHAT, NEVER_OPEN, assertConserved, startRig } from "./rig.ts";
import {
  type RawRequest,
  type Reply,
  STREAM_HEAD,
  chatAnswer,
  event,
  headerOf,
  jsonReply,
  roleChunk,
  streamOf,
  tokenChunk,
} from "./stub-engine.ts";

const REQUESTS = 1_000;
const IN_FLIGHT = 40;
const SEED = 20_261_121;

/** What an engine does with a request; the client's header says which, per engine. */
const DEEDS: Readonly<Record<string, Reply>> = {
  ok: (request, socket) => void socket.write(isStream(request) ? streamOf(8) : jsonReply(200, chatAnswer("ok"))),
  slow: (request, socket) => {
    if (!isStream(request)) return void setTimeout(() => writeIfOpen(socket, jsonReply(200, chatAnswer("slow"))), 8);
    socket.write(STREAM_HEAD + roleChunk());
    let left = 6;
    const timer = setInterval(() => {
      if (left-- > 0) return writeIfOpen(socket, tokenChunk("t"));
      clearInterval(timer);
      writeIfOpen(socket, `${event("[DONE]")}0\r\n\r\n`);
    }, 2);
    socket.on("close", () => clearInterval(timer));
  },
  reset: (_request, socket) => void socket.resetAndDestroy(),
  busy: (_request, socket) =>
    void socket.write(jsonReply(503, { error: { message: "currently busy and cannot accept" } })),
  error: (_request, socket) => void socket.write(jsonReply(500, { error: { message: "boom" } })),
  garbage: (_request, socket) => void socket.end("no http at all\r\n\r\n"),
  refuse: (_request, socket) => void socket.write(jsonReply(400, { error: { message: "no" } })),
  abort: (request, socket) =>
    void socket.write(
      isStream(request)
        ? `${STREAM_HEAD}${tokenChunk("", "abort")}${event("[DONE]")}0\r\n\r\n`
        : jsonReply(200, chatAnswer("", "abort")),
    ),
  cut: (request, socket) => {
    const start = isStream(request)
      ? STREAM_HEAD + roleChunk() + tokenChunk("t")
      : "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 90\r\n\r\n{";
    socket.write(start, () => setTimeout(() => socket.destroy(), 3));
  },
};
const NAMES = Object.keys(DEEDS);

function isStream(request: RawRequest): boolean {
  return request.body.includes('"stream":true');
}

function writeIfOpen(socket: Socket, text: string): void {
  if (socket.writable) socket.write(text);
}

/** One request over its own connection; leaves after `leaveAfter` ms where that is given. Resolves when it is over. */
function client(port: number, body: object, plan: string, leaveAfter: number | undefined): Promise<string> {
  const text = JSON.stringify(body);
  return new Promise((resolve) => {
    let got = "";
    const socket = connect(port, "127.0.0.1", () => {
      socket.write(
        `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-plan: ${plan}\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
      );
      if (leaveAfter !== undefined) setTimeout(() => socket.destroy(), leaveAfter);
    });
    socket.on("data", (data) => (got += data.toString()));
    socket.on("error", () => {});
    socket.on("close", () => resolve(got));
  });
}

function resources(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of process.getActiveResourcesInfo()) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

test(`${REQUESTS} requests with aborts, cuts and retries leave nothing behind (seed ${SEED})`, async () => {
  const before = resources();
  const engine =
    (index: number): Reply =>
    (request, socket) =>
      DEEDS[headerOf(request, "x-plan")!.split(",")[index]!]!(request, socket);
  const rig = await startRig([engine(0), engine(1), engine(2)], { breaker: NEVER_OPEN });
  const port = Number(new URL(rig.url).port);
  let sent = 0;
  let complete = 0;
  const worker = async (): Promise<void> => {
    while (sent < REQUESTS) {
      const random = randomFor(SEED, sent++);
      const pick = (): string =>
        random.next() < 0.5 ? (random.next() < 0.5 ? "ok" : "slow") : NAMES[random.below(NAMES.length)]!;
      const plan = `${pick()},${pick()},${pick()}`;
      const body = random.next() < 0.5 ? { ...CHAT, stream: true } : CHAT;
      const leaves = random.next() < 0.25 ? random.below(15) : undefined;
      const got = await client(port, body, plan, leaves);
      if (got.startsWith("HTTP/1.1 200") && (got.includes("[DONE]") || got.includes('"usage"'))) complete++;
      if (leaves === undefined) assert.match(got, /^HTTP\/1\.1 [245]/, `${plan}: every client that stays is answered`);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  while (rig.gateway.inFlight() > 0) await new Promise((resolve) => setTimeout(resolve, 2));

  assertConserved(rig.inputs, rig.router, rig.gateway);
  const arrived = rig.kinds().filter((kind) => kind === "request-arrived").length;
  const forwarded = rig.summaries.filter(({ attempts }) => attempts > 0).length;
  assert.equal(forwarded, arrived, "one summary for each request that was placed");
  const outcomes = new Set(rig.summaries.map(({ outcome }) => outcome));
  for (const outcome of ["ok", "failed", "aborted", "refused"] as const) assert.ok(outcomes.has(outcome), outcome);
  assert.ok(rig.gateway.counters.retries > 100);
  assert.ok(rig.gateway.counters.cuts > 5);
  assert.ok(rig.gateway.counters.clientAborts > 50);
  assert.ok(complete > REQUESTS / 3);
  await rig.close();
  for (let i = 0; i < 6_000 && JSON.stringify(resources()) !== JSON.stringify(before); i++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.deepEqual(resources(), before, "no socket, server or timer is left");
});
