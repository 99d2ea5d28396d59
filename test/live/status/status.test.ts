import assert from "node:assert/strict";
import { createServer, request as ask, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import { adminAccess } from "#live/admin/admin-access.ts";
import { nowMicros } from "#live/base/clock.ts";
import { DecisionRing, ShownDecisions } from "#live/status/shown-decisions.ts";
import { BlockSize } from "#live/endpoints/block-size.ts";
import { SourceBoard } from "#live/endpoints/source-board.ts";
import { staticTargets } from "#live/discovery/static.ts";
import { GatewayMetrics } from "#live/metrics/metrics.ts";
import { Readiness } from "#live/status/readiness.ts";
import { ProcessWatch } from "#live/status/process-watch.ts";
import { RecentTraffic } from "#live/status/recent-traffic.ts";
import type { PolicyAdmin } from "#live/admin/policy-admin.ts";
import { openPages } from "#live/status/open-pages.ts";
import { statusRoutes } from "#live/status/status.ts";
import type { Overview } from "#page/status/overview.ts";
import { FleetUnderTest, until } from "../discovery/fleet-under-test.ts";
import { answer, engineText, StubEngine } from "../discovery/stub-engine.ts";

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

interface EndpointView {
  readonly id: string;
  readonly state: string;
  readonly models: string[];
  readonly labels: object;
  readonly signals: Record<string, unknown> | null;
  readonly breaker: string | null;
  readonly standing: string | null;
  readonly ledger: object;
  readonly scrape: { scrapes: number };
}

interface DecisionView {
  readonly requestId: string;
  readonly kind: string;
  readonly endpoint: string;
  readonly scorers: { name: string; weight: number }[];
  readonly candidates: { endpoint: string; scores: Record<string, number>; total: number | null }[];
}

const NO_POLICY: PolicyAdmin = {
  bytesMax: 1024,
  view: () => undefined,
  history: () => ({ versions: [], forgotten: 0, refused: [] }),
  counts: () => [],
  unkept: () => Promise.resolve([]),
  change: () => assert.fail("nothing is changed here"),
  rollback: () => assert.fail("nothing is changed here"),
};

class StatusUnderTest {
  readonly fleet = new FleetUnderTest();
  readonly readiness = new Readiness(this.fleet.directory);
  readonly ring = new DecisionRing(4);
  readonly shown = new ShownDecisions();
  readonly traffic = new RecentTraffic();
  readonly process = new ProcessWatch();
  readonly #server: Server;

  constructor(t: TestContext, adminToken?: string, statusToken?: string, policy: PolicyAdmin = NO_POLICY) {
    const { router, directory, keeper, intake } = this.fleet;
    const metrics = new GatewayMetrics({
      router,
      directory,
      keeper,
      counters: () => undefined,
      recorder: () => undefined,
      processMetrics: false,
    });
    intake.listen(metrics);
    intake.listen(this.ring);
    intake.listen(this.shown);
    directory.listen(metrics);
    const app = new Hono<{ Bindings: HttpBindings }>();
    const { readiness, ring } = this;
    const blockSizes = new BlockSize({ configured: 32, change: () => {}, report: () => {} });
    statusRoutes({
      router,
      blockSizes,
      directory,
      keeper,
      sources: new SourceBoard(),
      readiness,
      decisions: ring,
      metrics,
      adminToken,
      policy,
      statusToken,
      traffic: this.traffic,
      process: this.process,
      shownDecisions: this.shown,
      version: "1.2.3",
    })(app);
    openPages({ metrics, readiness, version: "1.2.3" })(app);
    const listener = getRequestListener(app.fetch);
    this.#server = createServer((incoming, outgoing) => void listener(incoming, outgoing));
    t.after(async () => {
      this.#server.closeAllConnections();
      await new Promise((resolve) => this.#server.close(resolve));
      await keeper.stop();
    });
  }

  async get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    if (!this.#server.listening) await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    const { port } = this.#server.address() as AddressInfo;
    return new Promise((resolve, reject) => {
      const sent = ask({ port, host: "127.0.0.1", path, headers, agent: false }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => (text += part));
        response.on("end", () => resolve({ status: response.statusCode!, headers: response.headers, text }));
      });
      sent.on("error", reject).end();
    });
  }

  async json(path: string): Promise<unknown> {
    return JSON.parse((await this.get(path)).text) as unknown;
  }

  arrive(id: string): void {
    const request = {
      id,
      model: "tiny",
      tenant: "someone",
      session: "",
      sloClass: "",
      priority: 0,
      promptTokens: 100,
      promptTokensExact: false,
      outputTokensMax: undefined,
      sequences: 1,
      blocks: { hashes: new Int32Array(0), length: 0, blockTokens: 16 },
      profile: "",
    };
    this.fleet.intake.accept({ kind: "request-arrived", at: nowMicros(), request });
  }
}

async function stub(t: TestContext): Promise<StubEngine> {
  const engine = await StubEngine.start();
  t.after(() => engine.kill());
  return engine;
}

test("probes and metrics are open", async (t) => {
  const made = new StatusUnderTest(t, "secret");
  assert.deepEqual(JSON.parse((await made.get("/healthz")).text), { status: "alive" });
  const metrics = await made.get("/metrics");
  assert.match(metrics.headers["content-type"]!, /^text\/plain; version=0\.0\.4/);
  assert.match(metrics.text, /^gnomon_endpoints\{state="ready"\} 0$/m);
});

test("readyz lists what it waits for, from the start to the shutdown", async (t) => {
  const made = new StatusUnderTest(t);
  const waits = async (): Promise<string[]> => {
    const { status, text } = await made.get("/readyz");
    const { ready, waitsFor } = JSON.parse(text) as { ready: boolean; waitsFor: string[] };
    assert.equal(status, ready ? 200 : 503);
    assert.equal(ready, waitsFor.length === 0);
    return waitsFor;
  };
  assert.deepEqual(await waits(), ["the warm-up", "an endpoint: none is known"]);
  made.readiness.warm = true;
  const engine = await stub(t);
  engine.models = answer(503, "loading");
  const { url } = engine;
  made.fleet.keeper.setTargets("static", staticTargets([{ url }]));
  await until("asked", () => made.fleet.events.length > 0);
  assert.deepEqual(await waits(), [`endpoint ${url} (waiting): GET /v1/models: answered 503`]);
  engine.models = answer(200, '{"data":[{"id":"tiny"}]}');
  await until("ready", () => made.fleet.directory.get(url)!.state === "ready");
  assert.deepEqual(await waits(), []);
  await engine.kill();
  await until("lost", () => made.fleet.directory.get(url)!.state === "lost");
  assert.deepEqual(await waits(), [], "an empty pool is no reason to take the gateway away");
  made.readiness.draining = true;
  assert.match((await waits())[0]!, /shutting down/);
});

test("many endpoints are not listed without bound", () => {
  const { directory } = new FleetUnderTest();
  const readiness = new Readiness(directory);
  readiness.warm = true;
  for (let i = 0; i < 100; i++) {
    const entry = { id: `e${i}`, url: "http://e", dataParallelRank: undefined, apiKey: "sk-x" };
    directory.add({ ...entry, state: "waiting", detail: "not asked yet", models: [] });
  }
  const waits = readiness.waitsFor();
  assert.equal(waits.length, 17);
  assert.equal(waits.at(-1), "and 84 more endpoints");
  assert.ok(!waits.join().includes("sk-x"));
});

test("a source that cannot be read is waited for until an endpoint is there", () => {
  const { directory } = new FleetUnderTest();
  const readiness = new Readiness(directory);
  readiness.warm = true;
  const subject = "endpoint slices of vllm";
  readiness.note({ kind: "source-failed", subject, detail: "the API server answered 403" });
  assert.deepEqual(readiness.waitsFor(), [`${subject}: the API server answered 403`, "an endpoint: none is known"]);
  readiness.note({ kind: "source-recovered", subject, detail: "" });
  assert.deepEqual(readiness.waitsFor(), ["an endpoint: none is known"]);
  readiness.note({ kind: "source-failed", subject, detail: "the API server answered 500" });
  const entry = { id: "e", url: "http://e", dataParallelRank: undefined, apiKey: undefined, detail: "", models: [] };
  directory.add({ ...entry, state: "ready" });
  assert.deepEqual(readiness.waitsFor(), [], "what was found serves on");
});

test("a pool that was deleted makes the gateway unready once no endpoint is left, and one that is empty does not", () => {
  const { directory } = new FleetUnderTest();
  const readiness = new Readiness(directory);
  readiness.warm = true;
  const entry = { id: "e", url: "http://e", dataParallelRank: undefined, apiKey: undefined, detail: "", models: [] };
  directory.add({ ...entry, state: "ready" });
  assert.deepEqual(readiness.waitsFor(), []);
  const [subject, detail] = ["inferencepool ns/llama", "there is no such pool"];
  readiness.note({ kind: "source-missing", subject, detail });
  assert.deepEqual(readiness.waitsFor(), [], "what is there serves on");
  directory.remove("e");
  assert.deepEqual(readiness.waitsFor(), [`${subject}: ${detail}`]);
  readiness.note({ kind: "source-recovered", subject, detail: "" });
  assert.deepEqual(readiness.waitsFor(), []);
});

test("endpoints are shown with signals, ages and ledger, and without keys", async (t) => {
  const made = new StatusUnderTest(t);
  const engine = await stub(t);
  engine.metrics = answer(200, engineText({ running: 3, waiting: 1 }));
  const { url } = engine;
  made.fleet.keeper.setTargets(
    "static",
    staticTargets([
      { url, apiKey: "sk-engine", labels: { zone: "a" } },
      { url: "http://127.0.0.1:9", id: "absent" },
    ]),
  );
  await until("a load", () => made.fleet.loads(url).length > 1);
  made.arrive("one");
  const { text } = await made.get("/gnomon/endpoints");
  assert.ok(!text.includes("sk-engine"));
  const { endpoints } = JSON.parse(text) as { endpoints: EndpointView[] };
  const absent = endpoints.find(({ id }) => id === "absent")!;
  const present = endpoints.find(({ id }) => id === url)!;
  assert.deepEqual(Object.keys(absent), Object.keys(present), "an endpoint has the same fields in every state");
  assert.deepEqual([absent.signals, absent.breaker, absent.standing], [null, null, null]);
  assert.deepEqual([present.breaker, present.standing], ["closed", "well"]);
  assert.deepEqual([present.state, present.models, present.labels], ["ready", ["tiny"], { zone: "a" }]);
  const { freshness, ageMillis, running, waiting } = present.signals!;
  assert.deepEqual([freshness, running, waiting], ["fresh", 3, 1]);
  assert.ok(typeof ageMillis === "number" && ageMillis >= 0 && ageMillis < 60_000);
  assert.deepEqual(present.ledger, {
    requestsInFlight: 1,
    prefillTokensQueued: 100,
    decodeTokens: 0,
    promptTokensInFlight: 100,
  });
  assert.ok(present.scrape.scrapes >= 2);
});

test("decisions are shown whole, newest first, as many as asked for and kept", async (t) => {
  const made = new StatusUnderTest(t);
  made.arrive("refused");
  const engine = await stub(t);
  made.fleet.keeper.setTargets("static", staticTargets([{ url: engine.url }, { url: engine.url, id: "other" }]));
  await until("both", () => made.fleet.router.endpointRows(0).length === 2);
  for (const id of ["a", "b"]) made.arrive(id);
  const { decisions } = (await made.json("/gnomon/decisions")) as { decisions: DecisionView[] };
  assert.deepEqual(
    decisions.map(({ requestId, kind }) => [requestId, kind]),
    [
      ["b", "routed"],
      ["a", "routed"],
      ["refused", "rejected"],
    ],
  );
  const [{ scorers, candidates, endpoint }] = decisions as [DecisionView];
  assert.equal(candidates.length, 2);
  assert.ok(candidates.some((candidate) => candidate.endpoint === endpoint));
  const weights = new Map(scorers.map(({ name, weight }) => [name, weight]));
  for (const { scores, total } of candidates) {
    if (total === null) continue;
    const sum = Object.entries(scores).reduce((all, [name, score]) => all + score * weights.get(name)!, 0);
    assert.ok(Math.abs(sum - total) < 1e-9, "the scores and weights shown explain the total");
  }
  for (const id of ["c", "d", "e"]) made.arrive(id);
  assert.equal(((await made.json("/gnomon/decisions?n=2")) as { decisions: DecisionView[] }).decisions.length, 2);
  assert.equal(((await made.json("/gnomon/decisions?n=100000")) as { decisions: DecisionView[] }).decisions.length, 4);
  for (const bad of ["0", "-1", "x", "1.5", "100001", ""]) {
    const { status, text } = await made.get(`/gnomon/decisions?n=${bad}`);
    assert.equal(status, 400, bad);
    assert.match(text, /from 1 to 100000/);
  }
});

test("with a token the status pages want it, on loopback too", async (t) => {
  const made = new StatusUnderTest(t, "secret");
  for (const path of ["/gnomon/endpoints", "/gnomon/decisions", "/gnomon/unknown"]) {
    const { status, headers } = await made.get(path);
    assert.deepEqual([status, headers["www-authenticate"]], [401, "Bearer"]);
    assert.equal((await made.get(path, { authorization: "Bearer wrong" })).status, 401);
    assert.equal((await made.get(path, { authorization: "secret" })).status, 401);
  }
  const { status, headers } = await made.get("/gnomon/endpoints", { authorization: "bearer secret" });
  assert.deepEqual([status, headers["cache-control"]], [200, "no-store"]);
});

test("the status token opens the pages and none of the admin API", async (t) => {
  const made = new StatusUnderTest(t, "admin-secret", "status-secret");
  const sent = (token: string) => ({ authorization: `Bearer ${token}` });
  for (const token of ["admin-secret", "status-secret"]) {
    assert.equal((await made.get("/gnomon/overview", sent(token))).status, 200, token);
  }
  assert.equal((await made.get("/gnomon/overview")).status, 401);
  assert.equal((await made.get("/gnomon/admin/policy/history", sent("status-secret"))).status, 401);
  assert.equal((await made.get("/gnomon/admin/policy/history", sent("admin-secret"))).status, 200);
  const alone = new StatusUnderTest(t, undefined, "status-secret");
  assert.equal((await alone.get("/gnomon/overview")).status, 401, "on loopback too");
  assert.equal((await alone.get("/gnomon/admin/policy/history", sent("status-secret"))).status, 403);
});

test("the overview has what the page shows, and of decisions and traffic only what is new", async (t) => {
  const made = new StatusUnderTest(t);
  const engine = await stub(t);
  engine.metrics = answer(200, engineText({ running: 3, waiting: 1 }));
  made.fleet.keeper.setTargets(
    "static",
    staticTargets([{ url: engine.url, apiKey: "sk-engine" }, { url: "http://127.0.0.1:9" }]),
  );
  await until("a load", () => made.fleet.loads(engine.url).length > 0);
  made.arrive("one");
  const { text } = await made.get("/gnomon/overview");
  assert.ok(!text.includes("sk-engine"));
  const overview = JSON.parse(text) as Overview;
  const byId = new Map(overview.endpoints.map((one) => [one.id, one]));
  const { running, waiting, inFlight, freshness, breaker } = byId.get(engine.url)!.known!;
  assert.deepEqual([running, waiting, inFlight, freshness, breaker], [3, 1, 1, "fresh", "closed"]);
  assert.equal(byId.get("http://127.0.0.1:9")?.known, null);
  assert.deepEqual([overview.gateway.version, overview.gateway.requestsInFlight, overview.shadow], ["1.2.3", 1, null]);
  const [decision] = overview.decisions;
  assert.deepEqual([decision?.requestId, decision?.endpoint], ["one", engine.url]);
  const { slot } = overview.traffic.slots.at(-1)!;
  const next = (await made.json(`/gnomon/overview?decisions=${decision!.sequence}&slot=${slot}`)) as Overview;
  assert.deepEqual([next.decisions, next.traffic.slots.filter((one) => one.slot <= slot)], [[], []]);
  const detail = (await made.json(`/gnomon/decisions/${decision!.sequence}`)) as DecisionView;
  assert.equal(detail.candidates[0]?.endpoint, engine.url);
  assert.equal((await made.get("/gnomon/decisions/99")).status, 404);
  for (const bad of ["decisions=x", "slot=1.5"]) assert.equal((await made.get(`/gnomon/overview?${bad}`)).status, 400);
});

test("the overview has the last changes of the policy, made or refused, the newest first, with what was done", async (t) => {
  const change = (version: number, at: string, note: string) => {
    return { version, at, source: "admin", by: "ann", note, defaultProfile: "gnomon", profiles: ["gnomon"] };
  };
  const refused = { at: "2026-01-01T00:00:02.000Z", source: "file", by: "", problems: ["a: wrong", "b: too"] };
  const versions = [change(3, "2026-01-01T00:00:03.000Z", "rollback to 1"), change(2, "2026-01-01T00:00:01.000Z", "")];
  const policy = { ...NO_POLICY, history: () => ({ versions, forgotten: 0, refused: [refused] }) };
  const made = new StatusUnderTest(t, undefined, undefined, policy);
  const { policy: card } = (await made.json("/gnomon/overview")) as Overview;
  assert.deepEqual(
    card.changes.map(({ source, detail }) => [source, detail]),
    [
      ["admin", "gnomon (rollback to 1)"],
      ["file", "a: wrong; b: too"],
      ["admin", "gnomon"],
    ],
  );
});

test("the page's scripts are served without their types, and nothing else is", async (t) => {
  const made = new StatusUnderTest(t, "secret");
  const main = await made.get("/gnomon/page/status/main.ts");
  assert.deepEqual([main.status, main.headers["content-type"]], [200, "text/javascript; charset=utf-8"]);
  const imported = [...main.text.matchAll(/from "\.\.?\/([^"]+)"/g)].map(([, name]) => name!);
  assert.ok(imported.length > 3);
  for (const name of imported) {
    const path = name.startsWith("part/") ? name : `status/${name}`;
    assert.equal((await made.get(`/gnomon/page/${path}`)).status, 200, path);
  }
  assert.doesNotMatch(main.text, /interface |: PageState/);
  assert.match((await made.get("/gnomon/page/library/preact.js")).text, /export/);
  for (const path of ["tsconfig.json", "../live/status/status.ts", "status/nothing.ts", ""]) {
    assert.equal((await made.get(`/gnomon/page/${path}`)).status, 401, path);
  }
});

test("without a token they answer local requests and none that came through a proxy or by another name", async (t) => {
  const made = new StatusUnderTest(t);
  assert.equal((await made.get("/gnomon/endpoints")).status, 200);
  const foreign: Record<string, string>[] = [
    { "x-forwarded-for": "127.0.0.1" },
    { forwarded: "for=127.0.0.1" },
    { via: "1.1 proxy" },
    { "x-real-ip": "127.0.0.1" },
    { host: "evil.example" },
  ];
  for (const headers of foreign) {
    const { status, text } = await made.get("/gnomon/endpoints", headers);
    assert.equal(status, 403, JSON.stringify(headers));
    assert.match(text, /loopback/);
  }
});

test("only loopback addresses of the socket are local", () => {
  const access = adminAccess(undefined);
  const verdict = (remoteAddress: string | undefined, host = "localhost:8080") =>
    access({ headers: { host, "x-forwarded-proto": "http" }, remoteAddress });
  for (const address of ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
    assert.equal(verdict(address), "allowed");
  for (const address of ["10.0.0.1", "128.0.0.1", "::ffff:10.0.0.1", "1270.0.0.1", "fe80::1", "", undefined]) {
    assert.equal(verdict(address), "forbidden", String(address));
  }
  for (const host of ["127.0.0.1", "[::1]:8080", "LOCALHOST"]) assert.equal(verdict("::1", host), "allowed");
  for (const host of ["127.0.0.1.evil.example", "localhost.evil.example", "example"]) {
    assert.equal(verdict("::1", host), "forbidden", host);
  }
});

test("the page holds no data, may run only its own script, and asks nobody else", async (t) => {
  const made = new StatusUnderTest(t, "secret");
  const { status, headers, text } = await made.get("/gnomon/");
  assert.equal(status, 200);
  assert.match(headers["content-type"]!, /text\/html/);
  assert.match(
    String(headers["content-security-policy"]),
    /^default-src 'none'; script-src 'self' 'sha256-[^']+'; style-src 'sha256-.*; require-trusted-types-for 'script'/,
  );
  assert.ok(!/https?:\/\//.test(text), "no address of anybody else");
  assert.ok(!/innerHTML|document\.write/.test(text), "what came from clients is text");
  assert.equal((await made.get("/gnomon")).headers.location, "/gnomon/");
});
