import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { replayCommand } from "#cli/replay.ts";
import { servePlan } from "#cli/serve/serve-options.ts";
import { pino } from "pino";
import { ConfigError } from "#config/config-error.ts";
import { startEmulator } from "#emulator/server.ts";
import type { HeldIntake } from "#live/tap/held-intake.ts";
import { readRecordedRun } from "#shadow/recorded/recorded-run.ts";
import type { TraceItem } from "#trace/codec/record.ts";
import { inProcess } from "../../cli/in-process.ts";
import { until } from "../../live/discovery/fleet-under-test.ts";
import { ask, CHAT } from "../../live/gateway/rig.ts";
import { startedGateway } from "../started-gateway.ts";
import { FakeRouter } from "./fake-router.ts";
import { chat, ENGINE, itemsOf } from "./tapped-chats.ts";

/** A tap in front of a router of two emulated engines; its trace is read once it has ended. */
async function rig(t: TestContext, header: string | undefined, set: readonly string[] = [], timeScale = 20) {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-tap-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const common = { host: "127.0.0.1", port: 0, model: "tiny", timeScale, engine: ENGINE };
  const engines = [await startEmulator({ ...common, seed: 1 }), await startEmulator({ ...common, seed: 2 })];
  const router = new FakeRouter(
    engines.map(({ url }) => url),
    header,
  );
  const routerUrl = await router.start();
  const given = {
    set: [
      `record.directory=${directory}`,
      `tap.router=${routerUrl}`,
      "tap.name=fake",
      "scrape.intervalMillis=20",
      "listen.drainNoticeMillis=0",
      "listen.warmUpMillis=0",
      "listen.port=0",
      "listen.adminPort=0",
      ...set,
    ],
    endpoint: engines.map(({ url }) => url),
  };
  const lines: Record<string, unknown>[] = [];
  const log = pino(
    { level: "warn" },
    { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  );
  const stack = await startedGateway(servePlan(given, {}), {}, ["gateway", "endpoints"], log);
  const { close } = stack;
  t.after(async () => {
    await close();
    await router.stop();
    for (const engine of engines) await engine.close();
  });
  await until("both engines are there", () => stack.directory.all().every(({ state }) => state === "ready"));
  const { url } = stack.listening;
  const items = async (): Promise<TraceItem[]> => {
    await close();
    return itemsOf(directory);
  };
  return { url, routerUrl, router, engines, stack, directory, items, lines };
}

/** Of each request by the id that its client gave. */
function placesOf(items: readonly TraceItem[]) {
  const places = new Map<string, { endpoint: string; by: string | undefined; sure: number; reason: string }>();
  for (const item of items) {
    if (item.kind !== "record" || item.input.kind !== "request-arrived") continue;
    const { input, decision } = item;
    assert.ok(decision !== undefined);
    const endpoint = decision.kind === "routed" ? decision.endpoint : "";
    const { reason } = decision;
    // The gateway makes the ids of clients unique.
    places.set(input.request.id.split(".")[0]!, {
      endpoint,
      by: input.observed?.by,
      sure: input.observed?.sure ?? 0,
      reason,
    });
  }
  return places;
}

test("what another router decides is in the trace, which replays, and can be simulated under any profile", async (t) => {
  const { url, router, items, directory, stack } = await rig(t, "x-smg-routed-worker-id");
  const ids = Array.from({ length: 24 }, (_, i) => `r${i}`);
  await Promise.all(
    ids.map(async (id, i) => {
      const got = await ask(url, chat(i, i % 2 === 0), { headers: { "x-request-id": id } });
      assert.equal(got.status, 200, got.body);
      if (i % 2 === 0) assert.match(got.body, /data: \[DONE\]/);
    }),
  );
  const { counts } = stack.intake as HeldIntake;
  await until("all are placed", () => counts.header === ids.length);
  const all = await items();
  const places = placesOf(all);
  for (const id of ids)
    assert.deepEqual(places.get(id), { endpoint: router.went.get(id), by: "header", sure: 1, reason: "observed" }, id);
  const header = all.find((item) => item.kind === "run")?.header;
  assert.deepEqual(header?.observed, { router: "fake" });
  const { out, code, said } = await inProcess(t, [replayCommand()], ["replay", directory]);
  assert.equal(code, 0, said);
  assert.match(out, /24 decisions compared: all identical\n24 requests went where fake sent them/);
  const run = await readRecordedRun(
    (async function* () {
      yield* all;
    })(),
  );
  assert.equal(run.workload.length, ids.length);
  assert.ok(run.observed.every(({ ok, e2eMicros }) => ok && e2eMicros > 0));
  const streamed = run.observed.filter(({ ttftMicros }) => ttftMicros > 0);
  assert.equal(streamed.length, ids.length / 2);
  assert.ok(streamed.every(({ ttftMicros, e2eMicros }) => e2eMicros >= ttftMicros));
  assert.ok(run.workload.every(({ promptTokens, outputTokens }) => promptTokens > 10 && outputTokens >= 4));
});

const counters = async (t: TestContext, answersOf: (i: number) => number) => {
  const { url, router, stack, items } = await rig(t, undefined, ["tap.metricsMillis=50"], 0.2);
  const ids = Array.from({ length: 30 }, (_, i) => `r${i}`);
  // Three at a time, of many lengths.
  await Promise.all(
    [0, 1, 2].map(async (client) => {
      for (let i = client; i < ids.length; i += 3) {
        const asked = { ...chat(i, i % 2 === 0), n: answersOf(i) };
        const got = await ask(url, asked, { headers: { "x-request-id": ids[i]! } });
        assert.equal(got.status, 200, got.body);
      }
    }),
  );
  const { counts } = stack.intake as HeldIntake;
  await until("each has a place, or none", () => counts.metrics + counts.none === ids.length);
  const places = placesOf(await items());
  const placed = ids.filter((id) => places.get(id)?.by === "metrics");
  assert.ok(placed.length >= ids.length / 2, `${placed.length} of ${ids.length}`);
  const wrong = placed.filter((id) => places.get(id)?.endpoint !== router.went.get(id));
  const surelyWrong = wrong.filter((id) => places.get(id)!.sure > 0.99);
  assert.deepEqual(surelyWrong, []);
  const expected = placed.reduce((sum, id) => sum + 1 - places.get(id)!.sure, 0);
  assert.ok(wrong.length <= 3 + 2 * expected, `${wrong.length} of ${placed.length} are wrong, ${expected} expected`);
};

test("where no header names the engine, the engines' own counters do", (t) => counters(t, () => 1));

test("they do of several answers to one prompt as well, each of which an engine counts as a request", (t) =>
  counters(t, (i) => (i % 3 === 0 ? 3 : 1)));

test("where only headers are looked at and none names the engine, nothing is claimed", async (t) => {
  const { url, items } = await rig(t, undefined, ["tap.metricsMillis=0"]);
  for (let i = 0; i < 4; i++) await ask(url, chat(i, true), { headers: { "x-request-id": `r${i}` } });
  const places = placesOf(await items());
  assert.deepEqual(
    [...places.values()].map(({ by }) => by),
    ["none", "none", "none", "none"],
  );
});

test("what is no inference goes to the router too, and comes back as it is", async (t) => {
  const { url, routerUrl } = await rig(t, undefined);
  const cases = [
    ["GET", "/health"],
    ["GET", "/version"],
    ["GET", "/nothing"],
    ["DELETE", "/v1/chat/completions"],
    ["HEAD", "/health"],
  ] as const;
  for (const [method, path] of cases) {
    const [direct, tapped] = [
      await ask(routerUrl, undefined, { method, path }),
      await ask(url, undefined, { method, path }),
    ];
    assert.deepEqual([tapped.status, tapped.body], [direct.status, direct.body], `${method} ${path}`);
    assert.equal(tapped.headers["content-type"], direct.headers["content-type"]);
  }
  const models = await ask(url, undefined, { method: "GET", path: "/v1/models" });
  assert.match(models.body, /"id":"tiny"/);
  const metrics = await ask(url, undefined, { method: "GET", path: "/metrics" });
  assert.match(metrics.body, /^vllm:num_requests_running/m);
});

test("what cannot be read here is for the router to refuse", async (t) => {
  const { url, routerUrl, items } = await rig(t, undefined);
  const bodies = [
    "{",
    "",
    "[]",
    '{"model":"tiny"}',
    '{"messages":[]}',
    `{"model":"tiny","messages":${"[".repeat(500)}}`,
  ];
  for (const body of bodies) {
    const [direct, tapped] = [await ask(routerUrl, body), await ask(url, body)];
    assert.equal(tapped.status, direct.status, body.slice(0, 40));
    assert.equal(tapped.body, direct.body);
  }
  const unreadable = await ask(url, Buffer.from([31, 139, 8, 0]), { headers: { "content-encoding": "gzip" } });
  assert.ok(unreadable.status >= 400 && unreadable.status !== 415, String(unreadable.status));
  assert.equal(placesOf(await items()).size, bodies.length + 1);
});

test("a router that is gone is named in errors and log, and is an error of this request alone; once it is back, the next one is served", async (t) => {
  const { url, engines, router, routerUrl, lines } = await rig(t, undefined);
  await router.stop();
  for (let i = 0; i < 5; i++) {
    const { status, body } = await ask(url, CHAT);
    assert.equal(status, 502);
    assert.match(body, /"The router behind this port could not be reached, or broke off\."/);
  }
  const failed = lines.filter(({ event }) => event === "attempt-failed");
  assert.deepEqual(
    failed.map(({ endpoint }) => endpoint),
    Array(5).fill(routerUrl),
  );
  const again = new FakeRouter(engines.map(({ url: engine }) => engine));
  const { port } = new URL(routerUrl);
  await again.start(Number(port));
  t.after(() => again.stop());
  assert.equal((await ask(url, CHAT)).status, 200);
});

test("whatever asks for a decision of this gateway's own is refused beside another router, by its key", async () => {
  const set = ["tap.router=http://127.0.0.1:9", "picker.port=9002", "autopilot.enabled=true", "shadow.enabled=true"];
  const plan = servePlan({ set, endpoint: ["http://127.0.0.1:10"] }, {});
  await assert.rejects(startedGateway(plan), (error) => {
    assert.ok(error instanceof ConfigError);
    assert.deepEqual(
      error.lines.map((line) => line.split(":")[0]),
      ["picker.port", "shadow.enabled", "autopilot.enabled"],
    );
    return true;
  });
  await assert.rejects(startedGateway(servePlan({ set: set.slice(0, 1) }, {})), /endpoints: expected the engines/);
});
