import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Emulator } from "#emulator/server.ts";
import { FaultSyntaxError, parseFaults } from "#emulator/fault/fault.ts";
import { FaultPlan } from "#emulator/fault/fault-plan.ts";
import { startAs } from "../captures.ts";
import { eventData, header, parseResponse, type HttpMessage } from "../http-message.ts";
import { isWhole, requestBytes, sendRaw } from "../raw-client.ts";
import { until } from "../until.ts";

const ASK = { prompt: "one two three four", max_tokens: 6, ignore_eos: true };
const STREAM = { ...ASK, stream: true };

test("every fault of the set parses, anything else names what is accepted", () => {
  const good =
    "status=418;hang;reset;kill;slow=5;content-type=text/html;garbage;cut=2;stall=0;truncate=1;error=3;abort=4";
  assert.equal(parseFaults(good).length, 12);
  assert.deepEqual(parseFaults(" cut=3 ; slow=20 "), [
    { kind: "cut", events: 3 },
    { kind: "slow", ms: 20 },
  ]);
  for (const bad of ["cut", "cut=x", "cut=-1", "hang=1", "explode", "status=42", "slow=", "content-type=x", "=3"]) {
    assert.throws(
      () => parseFaults(bad),
      (error) => error instanceof FaultSyntaxError && error.message.includes("truncate=N"),
      bad,
    );
  }
});

test("rules hit as often as they say, in a repeatable order", () => {
  const draws = (): readonly boolean[] => {
    const plan = new FaultPlan(5);
    plan.add({ fault: "hang", path: undefined, count: 30, probability: 0.5 });
    return Array.from({ length: 200 }, () => plan.draw("/v1/completions", true).instead?.kind === "hang");
  };
  assert.deepEqual(draws(), draws());
  assert.equal(draws().filter(Boolean).length, 30);
  const first = draws().slice(0, 40).filter(Boolean).length;
  assert.ok(first > 8 && first < 32, String(first));
});

describe("a fault ordered by header", () => {
  let emulator: Emulator;
  before(async () => {
    emulator = await startAs("18109");
  });
  after(() => emulator.close());

  const send = (body: unknown, fault: string, done = isWhole): Promise<Buffer> =>
    sendRaw(emulator.port, requestBytes("POST", "/v1/completions", body, [`x-emulator-fault: ${fault}`]), done);
  const answer = async (body: unknown, fault: string): Promise<HttpMessage> => parseResponse(await send(body, fault));
  const never = (): boolean => false;

  test("a status is answered as an error of that status, without the engine", async () => {
    const { status, chunks } = await answer(ASK, "status=503");
    assert.equal(status, 503);
    assert.equal((JSON.parse(chunks[0] ?? "") as { error: { code: number } }).error.code, 503);
  });

  test("unknown: refused with the accepted ones", async () => {
    const { status, chunks } = await answer(ASK, "explode");
    assert.equal(status, 400);
    assert.match(chunks[0] ?? "", /unknown fault.*explode.*cut=N/);
  });

  test("cut: that many events whole, then the connection closes without the last chunk", async () => {
    const message = parseResponse(await send(STREAM, "cut=3", never));
    assert.equal(message.complete, false);
    assert.equal(eventData(message).length, 3);
    const body = parseResponse(await send(ASK, "cut=0", never));
    assert.equal(body.complete, false);
    assert.ok((body.chunks[0] ?? "").length > 0);
  });

  test("truncate: the body ends cleanly, without [DONE]", async () => {
    const message = await answer(STREAM, "truncate=2");
    assert.equal(message.complete, true);
    assert.equal(eventData(message).length, 2);
    const body = await answer(ASK, "truncate=0");
    assert.equal(body.complete, true);
    assert.throws(() => JSON.parse(body.chunks[0] ?? ""));
  });

  test("error: an error event and [DONE], or status 500", async () => {
    const events = eventData(await answer(STREAM, "error=2"));
    assert.equal(events.length, 4);
    assert.match(events[2] ?? "", /^\{"error": \{"message": "EngineCore/);
    assert.equal(events[3], "[DONE]");
    assert.equal((await answer(ASK, "error=0")).status, 500);
  });

  test("abort: finish_reason abort after that many tokens", async () => {
    const events = eventData(await answer(STREAM, "abort=2"));
    assert.match(events.at(-2) ?? "", /"finish_reason":"abort"/);
    assert.equal(events.length, 3);
    const body = await answer(ASK, "abort=0");
    assert.match(body.chunks[0] ?? "", /"text":"","logprobs":null,"finish_reason":"abort"/);
  });

  test("garbage has status 200 and is neither events nor JSON; another content-type leaves the body as it is", async () => {
    const garbage = await answer(STREAM, "garbage");
    assert.equal(garbage.status, 200);
    assert.ok(!garbage.chunks.join("").startsWith("data: {"));
    const body = await answer(ASK, "garbage");
    assert.throws(() => JSON.parse(body.chunks[0] ?? ""));
    const typed = await answer(ASK, "content-type=text/html");
    assert.equal(header(typed, "content-type"), "text/html");
    assert.equal((JSON.parse(typed.chunks[0] ?? "") as { object: string }).object, "text_completion");
  });

  test("slow: the same bytes, later", async () => {
    const from = performance.now();
    const events = eventData(await answer(STREAM, "slow=15"));
    assert.equal(events.length, 7);
    // A timer may be up to a millisecond early.
    assert.ok(performance.now() - from >= 6 * 14);
    assert.equal((await answer(ASK, "slow=10")).status, 200);
  });

  test("hang and stall: nothing more, until the client goes; nothing stays behind", async () => {
    for (const [body, fault, bytes] of [
      [ASK, "hang", 0],
      [STREAM, "stall=2", 1],
      [ASK, "stall=0", 1],
    ] as const) {
      let seen = 0;
      const gone = sendRaw(
        emulator.port,
        requestBytes("POST", "/v1/completions", body, [`x-emulator-fault: ${fault}`]),
        (received) => {
          seen = received.length;
          return false;
        },
      );
      if (bytes > 0) await until("its beginning comes", () => seen > 0);
      const closed = await Promise.race([gone.then(() => true), sleep(60).then(() => false)]);
      assert.equal(closed, false, fault);
      assert.equal(seen > 0, bytes > 0, fault);
    }
  });

  test("reset: the connection breaks before any byte", async () => {
    await assert.rejects(send(ASK, "reset"), /ECONNRESET/);
  });

  test("and afterwards nothing is in flight", async () => {
    await until("all gone", () => emulator.stats().inFlight === 0);
    const { arrived, finished, aborted, failed, refused } = emulator.stats();
    assert.equal(arrived, finished + aborted + failed + refused);
  });
});

test("kill: the engine dies and the port closes", async () => {
  const emulator = await startAs("18109");
  const bytes = requestBytes("POST", "/v1/completions", ASK, ["x-emulator-fault: kill"]);
  await sendRaw(emulator.port, bytes, () => false).catch(() => undefined);
  for (;;) {
    const health = await sendRaw(emulator.port, requestBytes("GET", "/health"), isWhole).catch(() => undefined);
    if (health === undefined) break;
    await sleep(5);
  }
  assert.equal(emulator.stats().phase, "dead");
  await emulator.close();
});

test("the admin interface adds, lists and clears rules, and refuses what it does not know", async () => {
  const emulator = await startAs("18109");
  try {
    const call = async (method: string, path: string, body?: unknown): Promise<HttpMessage> =>
      parseResponse(await sendRaw(emulator.port, requestBytes(method, path, body), isWhole));
    const added = await call("POST", "/emulator/faults", { fault: "status=500", count: 2 });
    assert.match(added.chunks[0] ?? "", /"fault":"status=500","count":2,"probability":1,"hits":0/);
    await call("POST", "/emulator/faults", { fault: "status=502", path: "/health", count: 1 });
    assert.deepEqual(
      [
        (await call("POST", "/v1/completions", ASK)).status,
        (await call("GET", "/health")).status,
        (await call("GET", "/health")).status,
        (await call("POST", "/tokenize", { prompt: "x" })).status,
        (await call("POST", "/v1/completions", ASK)).status,
        (await call("POST", "/v1/completions", ASK)).status,
      ],
      [500, 502, 200, 200, 500, 200],
    );
    for (const bad of [{ fault: "explode" }, { fault: "hang", colour: 1 }, { fault: "hang", probability: 2 }, {}]) {
      const { status, chunks } = await call("POST", "/emulator/faults", bad);
      assert.equal(status, 400, JSON.stringify(bad));
      assert.match(chunks[0] ?? "", /accepted/);
    }
    assert.match((await call("DELETE", "/emulator/faults")).chunks[0] ?? "", /^\{"faults":\[\]\}$/);
    assert.match((await call("GET", "/emulator/stats")).chunks[0] ?? "", /"phase":"serving","arrived":1/);
  } finally {
    await emulator.close();
  }
});

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
