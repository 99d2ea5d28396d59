import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";

import { type DnsName, DnsSource, type DnsSourceOptions } from "#live/discovery/dns-source.ts";
import type { KeeperEvent } from "#live/endpoints/keeper-event.ts";
import { SourceBoard } from "#live/endpoints/source-board.ts";
import type { Target } from "#live/endpoints/target.ts";
import { FakeNameServer, type FakeRecord } from "./fake-name-server.ts";
import { FleetUnderTest, until } from "./fleet-under-test.ts";
import { StubEngine } from "./stub-engine.ts";

const NAME: DnsName = { name: "vllm.infer", type: "A", port: 8000, scheme: "http" };
const a = (address: string, ttl = 0): FakeRecord => ({ type: "A", address, ttl });

async function nameServer(t: TestContext): Promise<FakeNameServer> {
  const server = await FakeNameServer.start();
  t.after(() => server.stop());
  return server;
}

function source(t: TestContext, server: FakeNameServer, names: DnsName[], more: Partial<DnsSourceOptions> = {}) {
  const shown: (readonly Target[])[] = [];
  const events: KeeperEvent[] = [];
  const board = new SourceBoard();
  const followed = new DnsSource({
    names,
    servers: [server.address],
    timeoutMillis: 30_000,
    millisMin: 5,
    millisMax: 20,
    retryMillis: 2,
    setTargets: (targets) => shown.push(targets),
    report: (event) => events.push(event),
    board,
    ...more,
  });
  t.after(() => followed.stop());
  return { shown, events, board, followed, urls: () => shown.at(-1)?.map(({ url }) => url) };
}

test("each address of a name is an endpoint, with what is known of all; those that go and come are noticed", async (t) => {
  const server = await nameServer(t);
  server.records.set("A vllm.infer", [a("10.0.0.2"), a("10.0.0.1")]);
  const facts = { labels: { role: "decode" }, apiKey: "k", kvCapacityTokens: 1600 };
  const { shown, urls, events } = source(t, server, [{ ...NAME, ...facts }]);
  await until("a first answer", () => shown.length === 1);
  assert.deepEqual(urls(), ["http://10.0.0.1:8000", "http://10.0.0.2:8000"]);
  const { labels, apiKey, kvCapacityTokens, serverName } = shown[0]![0]!;
  assert.deepEqual({ labels, apiKey, kvCapacityTokens, serverName }, { ...facts, serverName: undefined });
  server.records.set("A vllm.infer", [a("10.0.0.2"), a("10.0.0.3")]);
  await until("the change", () => shown.length === 2);
  assert.deepEqual(urls(), ["http://10.0.0.2:8000", "http://10.0.0.3:8000"]);
  const asked = server.seen.length;
  await until("further questions", () => server.seen.length > asked + 2);
  assert.equal(shown.length, 2, "answers that change nothing show nothing");
  assert.deepEqual(events, []);
});

test("AAAA names become URLs with brackets; an https name is the one that certificates are held against", async (t) => {
  const server = await nameServer(t);
  server.records.set("AAAA six.infer", [{ type: "AAAA", words: [0xfd00, 0, 0, 0, 0, 0, 0, 7], ttl: 0 }]);
  const { shown } = source(t, server, [{ name: "six.infer", type: "AAAA", port: 443, scheme: "https" }]);
  await until("an answer", () => shown.length === 1);
  const [{ url, serverName } = { url: "", serverName: "" }] = shown[0]!;
  assert.deepEqual([url, serverName], ["https://[fd00::7]", "six.infer"]);
});

test("SRV: hosts of the most preferred priority with their own ports; a host without an address is passed over", async (t) => {
  const server = await nameServer(t);
  const srv = (host: string, port: number, priority: number): FakeRecord => ({
    type: "SRV",
    host,
    port,
    priority,
    ttl: 9,
  });
  server.records.set("SRV _http._tcp.vllm", [
    srv("a.x", 8001, 1),
    srv("b.x", 8002, 1),
    srv("gone.x", 1, 1),
    srv("c.x", 8003, 2),
  ]);
  server.records.set("A a.x", [a("10.1.0.1")]);
  server.records.set("AAAA b.x", [{ type: "AAAA", words: [0xfd00, 0, 0, 0, 0, 0, 0, 1], ttl: 0 }]);
  server.records.set("A c.x", [a("10.1.0.3")]);
  const { shown, urls, board } = source(t, server, [{ ...NAME, name: "_http._tcp.vllm", type: "SRV" }]);
  await until("an answer", () => shown.length === 1);
  assert.deepEqual(urls(), ["http://10.1.0.1:8001", "http://[fd00::1]:8002"]);
  assert.deepEqual(
    board.rows().map(({ source: name, up, targets }) => [name, up, targets]),
    [["dns SRV _http._tcp.vllm", true, 2]],
  );
});

for (const mood of ["silent", "server-failure", "no-such-name"] as const) {
  test(`a name server that is ${mood} takes nothing away; one line names it, and one its return`, async (t) => {
    const server = await nameServer(t);
    server.records.set("A vllm.infer", [a("10.0.0.1")]);
    const { shown, events, board, urls } = source(t, server, [NAME], mood === "silent" ? { timeoutMillis: 250 } : {});
    await until("an answer", () => shown.length === 1);
    server.mood = mood;
    await until("several failures", () => (board.rows()[0]?.failures ?? 0) >= (mood === "silent" ? 1 : 3));
    assert.deepEqual(urls(), ["http://10.0.0.1:8000"]);
    assert.equal(board.rows()[0]!.up, false);
    assert.notEqual(board.rows()[0]!.detail, "");
    server.mood = "answers";
    await until("the return", () => board.rows()[0]!.up);
    assert.equal(shown.length, 1);
    assert.deepEqual(
      events.map(({ kind, subject }) => [kind, subject]),
      [
        ["source-failed", "dns A vllm.infer"],
        ["source-recovered", "dns A vllm.infer"],
      ],
    );
    assert.match(events[0]!.detail, /its last answer stays in force$/);
    assert.equal(board.rows()[0]!.recoveries, 1);
  });
}

test("two names with one address are one endpoint, described by the first, for as long as either has it", async (t) => {
  const server = await nameServer(t);
  server.records.set("A vllm.infer", [a("10.0.0.1")]);
  server.records.set("A other.infer", [a("10.0.0.1")]);
  const names = [
    { ...NAME, labels: { of: "first" } },
    { ...NAME, name: "other.infer", labels: { of: "second" } },
  ];
  const { shown, board } = source(t, server, names);
  await until("both answers", () => board.rows().every(({ lists }) => lists > 0));
  await until("the first's", () => shown.at(-1)?.[0]?.labels["of"] === "first");
  server.records.set("A vllm.infer", [a("10.0.0.9")]);
  await until("the second's", () => shown.at(-1)?.length === 2);
  assert.deepEqual(
    shown.at(-1)!.map(({ url, labels }) => [url, labels["of"]]),
    [
      ["http://10.0.0.9:8000", "first"],
      ["http://10.0.0.1:8000", "second"],
    ],
  );
});

test("the time to live decides when a name is looked up again, within bounds; never together", async (t) => {
  const server = await nameServer(t);
  server.records.set("A vllm.infer", [a("10.0.0.1", 3600)]);
  const draws = [0, 1];
  const times = { millisMin: 10, millisMax: 40, random: () => draws.shift() ?? 0.5 };
  source(t, server, [NAME], times);
  await until("three questions", () => server.seen.length >= 3);
  const [first, second, third] = server.seenMillis as [number, number, number];
  // An hour is cut to 40 ms, less a tenth for the first draw and more for the second. Nothing bounds them from above here:
  // a busy machine is late. A timer may be early by a millisecond.
  assert.ok(second - first >= 35, `${second - first}`);
  assert.ok(third - second >= 43, `${third - second}`);
});

test("found by DNS, an engine joins, is routed to and leaves; while the name server fails it stays", async (t) => {
  const engine = await StubEngine.start();
  t.after(() => engine.kill());
  const server = await nameServer(t);
  server.records.set("A vllm.infer", [a("127.0.0.1")]);
  const fleet = new FleetUnderTest();
  t.after(() => fleet.keeper.stop());
  const setTargets = (targets: readonly Target[]): void => fleet.keeper.setTargets("dns", targets);
  const { board } = source(t, server, [{ ...NAME, port: engine.port }], { setTargets });
  await until("joined", () => fleet.story(engine.url).includes("endpoint-joined"));
  server.mood = "server-failure";
  await until("a failure", () => board.rows()[0]!.failures > 0);
  assert.equal(fleet.directory.get(engine.url)!.state, "ready");
  server.mood = "answers";
  server.records.set("A vllm.infer", [a("127.0.0.2")]);
  await until("left", () => fleet.story(engine.url).at(-1) === "endpoint-left");
});
