import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";

import fc from "fast-check";

import { CHAT, NEVER_OPEN, type Rig, ask, startRig } from "./rig.ts";
import {
  type Reply,
  STREAM_END,
  STREAM_HEAD,
  chatAnswer,
  event,
  jsonReply,
  roleChunk,
  tokenChunk,
} from "./stub-engine.ts";

const error = (code: number): string => event({ error: { message: "no", type: "E", param: null, code } });
/** What engines send, in whole and in part, in order and out of it. */
const PIECES = {
  head: STREAM_HEAD,
  role: roleChunk(),
  token: tokenChunk("t"),
  longToken: tokenChunk("l".repeat(70_000)),
  stop: tokenChunk("s", "stop"),
  abort: tokenChunk("a", "abort"),
  usage: event({ id: "c", choices: [], usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 } }),
  comment: event("").replace("data: ", ": beat"),
  error500: error(500),
  error400: error(400),
  garbage: event("hello"),
  half: event('{"choices":[{"index":0').replace("\n\n", "  "),
  done: event("[DONE]"),
  end: STREAM_END,
  json: jsonReply(200, chatAnswer("whole")),
  aborted: jsonReply(200, chatAnswer("half", "abort")),
  json500: jsonReply(500, { error: "no" }),
  json400: jsonReply(400, { error: "no" }),
  html: "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\n<p/>",
} as const;
const MARK = /^data: \[DONE\]$/gm;

type Move = keyof typeof PIECES | "wait" | "reset" | "close";

const rarely = fc.constantFrom(...(Object.keys(PIECES) as Move[]), "wait", "reset", "close");
const stream = fc
  .tuple(
    fc.array(fc.constantFrom<Move>("role", "token", "longToken", "comment", "wait", "usage"), { maxLength: 4 }),
    fc.option(rarely, { freq: 3 }),
    fc.subarray<Move>(["stop", "usage", "done", "end"]),
  )
  .map(([begin, odd, end]): Move[] => ["head", ...begin, ...(odd === null ? [] : [odd]), ...end]);
const SCRIPT = fc.oneof({ weight: 3, arbitrary: stream }, { weight: 1, arbitrary: fc.array(rarely, { maxLength: 3 }) });
const ENDS = fc.constantFrom<Move>("reset", "close");
const SCRIPTS = fc.array(
  fc.tuple(SCRIPT, ENDS).map(([moves, end]) => [...moves, end]),
  { minLength: 3, maxLength: 3 },
);

/** Each piece as a write of its own where a wait stands before it; the connection ends with the script. */
function plays(moves: readonly Move[]): Reply {
  return (_request, socket) => {
    let at = 0;
    const go = (): void => {
      let text = "";
      for (; at < moves.length && moves[at] !== "wait"; at++) {
        const move = moves[at]!;
        if (move === "reset" || move === "close") {
          const end = (): void => void (move === "reset" ? socket.resetAndDestroy() : socket.end());
          return void (text === "" ? end() : socket.write(text, end));
        }
        text += PIECES[move as keyof typeof PIECES];
      }
      at++;
      if (text !== "") socket.write(text);
      setImmediate(() => setImmediate(go));
    };
    go();
  };
}

/** A client that leaves after so many reads; 0 at once. */
function leave(rig: Rig, body: object, reads: number): Promise<void> {
  return new Promise((resolve) => {
    const text = JSON.stringify(body);
    const socket = connect(Number(new URL(rig.url).port), "127.0.0.1");
    socket.on("error", () => {});
    socket.on("close", () => resolve());
    let left = reads;
    socket.on("data", () => left-- <= 1 && socket.destroy());
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
      () => left === 0 && socket.destroy(),
    );
  });
}

async function settled(rig: Rig, requests: number): Promise<void> {
  const start = Date.now();
  while (rig.summaries.length < requests || rig.gateway.inFlight() > 0) {
    assert.ok(Date.now() - start < 60_000, "a request does not end");
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("whatever engines send and whenever they break, an answer is whole, or cut openly, or an error", async () => {
  const rig = await startRig([() => {}, () => {}, () => {}], { breaker: NEVER_OPEN, limits: { retryBurst: 1e6 } });
  const outcomes = new Map<string, number>();
  let requests = 0;
  const drawn = fc.record({
    scripts: SCRIPTS,
    streams: fc.boolean(),
    leavesAfter: fc.option(fc.integer({ min: 0, max: 2 }), { freq: 4 }),
  });
  try {
    await fc.assert(
      fc.asyncProperty(drawn, async ({ scripts, streams, leavesAfter }) => {
        scripts.forEach((moves, i) => (rig.engines[i]!.reply = plays(moves)));
        const from = rig.inputs.length;
        const body = streams ? { ...CHAT, stream: true } : CHAT;
        const got = leavesAfter === null ? await ask(rig.url, body) : await leave(rig, body, leavesAfter);
        if (leavesAfter !== 0 || rig.summaries.length > requests) await settled(rig, ++requests);
        else await new Promise((resolve) => setTimeout(resolve, 20));
        requests = rig.summaries.length;
        const summary = rig.summaries.at(-1);
        outcomes.set(summary?.outcome ?? "", (outcomes.get(summary?.outcome ?? "") ?? 0) + 1);
        const kinds = rig.inputs.slice(from).map(({ kind }) => kind);
        assert.ok(kinds.lastIndexOf("request-retried") <= kinds.lastIndexOf("attempt-failed") + 1);
        if (got === undefined || summary === undefined) return;
        const marks = [...got.body.matchAll(MARK)].length;
        const wholeStream = got.status === 200 && got.body.startsWith("data:") && !got.cut;
        if (summary.outcome === "ok" && wholeStream) assert.ok(marks >= 1, "a whole stream has its mark");
        if (summary.outcome === "failed" || summary.outcome === "timeout") {
          assert.equal(marks, 0, "no mark of completion in what broke");
          assert.ok(got.cut || /error/.test(got.body), "what broke shows it");
        }
        assert.ok(!/incomplete.*^data: \[DONE\]$/ms.test(got.body));
      }),
      { numRuns: 150 },
    );
  } finally {
    await rig.close();
  }
  for (const one of ["aborted", "failed", "ok"]) assert.ok(outcomes.has(one), `no request was ${one}`);
});
