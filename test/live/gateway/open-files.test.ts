import assert from "node:assert/strict";
import { connect } from "node:net";
import { test } from "node:test";
import { text } from "node:stream/consumers";
import { Agent, type buildConnector } from "undici";
import { askEngine } from "#live/endpoints/engine-request.ts";
import { HealthChecker, newCheckCounts, Turnstile } from "#live/keeper/health-checker.ts";
import type { FaultEvent } from "#live/log/fault-log.ts";
import { OpenFiles } from "#live/gateway/open-files.ts";
import { EngineConnections } from "#live/tls/connections.ts";
import { ask, CHAT, startRig } from "./rig.ts";
import { chatAnswer, jsonReply } from "./stub-engine.ts";

/** As a system that allows no further file. */
const noFiles: buildConnector.connector = (_options, callback) =>
  process.nextTick(callback, Object.assign(new Error("connect EMFILE"), { code: "EMFILE" }), null);

class NoFiles extends EngineConnections {
  override connector(): buildConnector.connector {
    return noFiles;
  }
}

test("a client that would take the last files is refused with an answer, counted, and reported once", async () => {
  // Fewer than any process has open.
  const rig = await startRig([(_r, s) => void s.write(jsonReply(200, chatAnswer("a")))], { filesMax: 17 });
  assert.deepEqual(rig.gateway.counters.outOfFiles, { client: 0, engine: 0 });
  const port = Number(new URL(rig.url).port);
  for (let i = 0; i < 3; i++) {
    const socket = connect(port, "127.0.0.1");
    assert.match(await text(socket), /^HTTP\/1\.1 429 [^]*connection: close[^]*"The gateway has as many connections/);
  }
  assert.deepEqual(rig.gateway.counters.outOfFiles, { client: 3, engine: 0 });
  assert.deepEqual(
    rig.faults.map(({ kind }) => kind),
    ["files-exhausted"],
  );
  await rig.close();
});

test("it is reported when files are free again, with how much was refused or failed meanwhile", (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const reports: FaultEvent[] = [];
  const counts = {};
  const files = new OpenFiles({ observe: { fault: (event) => void reports.push(event) }, filesMax: 1_000_000 }, counts);
  for (let i = 0; i < 2; i++) files.spent("engine");
  t.mock.timers.tick(1_000);
  files.spent("client");
  assert.deepEqual(
    reports.map(({ kind, figures }) => [kind, figures?.["refusedOrFailed"]]),
    [
      ["files-exhausted", undefined],
      ["files-free", 2],
      ["files-exhausted", undefined],
    ],
  );
  assert.deepEqual(counts, { engine: 2, client: 1 });
  files.stop();
});

test("a connection that this process may not open speaks against no engine", async () => {
  const rig = await startRig([], { urls: ["https://127.0.0.1:1"], connections: new NoFiles() });
  for (let i = 0; i < 8; i++) assert.equal((await ask(rig.url, CHAT)).status, 429);
  assert.ok(rig.gateway.counters.outOfFiles["engine"]! > 0);
  assert.deepEqual(Object.keys(rig.gateway.counters.faults), ["saturated"]);
  assert.equal(rig.faults.filter(({ kind }) => kind === "files-exhausted").length, 1);
  assert.equal(rig.faults.filter(({ kind }) => kind === "breaker-open").length, 0);
  await rig.close();
});

test("a question to an engine that this process may not ask is no verdict on the engine", async () => {
  const dispatcher = new Agent({ connect: noFiles });
  const asked = { dispatcher, apiKey: undefined, timeoutMillis: 60_000, bytesMax: 1_000 };
  const answer = await askEngine("http://127.0.0.1:1/metrics", { ...asked, stop: new AbortController().signal });
  assert.deepEqual(answer, {
    kind: "failed",
    fault: "no-files",
    detail: "this gateway can open no connection (EMFILE)",
  });
  const counts = newCheckCounts();
  const asks = Promise.withResolvers<void>();
  let looks = 0;
  const checker = new HealthChecker({
    ...asked,
    path: "/health",
    intervalMillis: 1,
    unhealthyAfter: 1,
    healthyAfter: 1,
    turnstile: new Turnstile(1),
    counts,
    url: "http://127.0.0.1:1",
    wanted: () => {
      if (++looks > 5) asks.resolve();
      return true;
    },
    judged: () => assert.fail("nothing is known"),
  });
  await asks.promise;
  await checker.stop();
  assert.deepEqual(counts, newCheckCounts());
  await dispatcher.close();
});
