import assert from "node:assert/strict";
import { once } from "node:events";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { replayCommand } from "#cli/replay.ts";
import { servePlan } from "#cli/serve/serve-options.ts";
import { startEmulator } from "#emulator/server.ts";
import type { HeldIntake } from "#live/tap/held-intake.ts";
import type { TraceItem } from "#trace/codec/record.ts";
import { readRecordedRun } from "#shadow/recorded/recorded-run.ts";
import { inProcess } from "../../cli/in-process.ts";
import { until } from "../../live/discovery/fleet-under-test.ts";
import { ask } from "../../live/gateway/rig.ts";
import { freePort, listening, NO_ENVOY, onPorts, startEnvoy } from "../../picker/real-envoy.ts";
import { startedGateway } from "../started-gateway.ts";
import { FakeRouter } from "./fake-router.ts";
import { chat, ENGINE, itemsOf } from "./tapped-chats.ts";

const skip = NO_ENVOY;
const BY_HEADER = "original_dst_lb_config: {use_http_header: true, http_header_name: x-gateway-destination-endpoint}";
const CONFIG = readFileSync(join(import.meta.dirname, "../../../deploy/envoy-tap.yaml"), "utf8");

/** Emulated engines whose requests are counted at their doors, a real Envoy before them, and a tap beside that. */
async function rig(t: TestContext, change: (config: string) => string = (config) => config) {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-tap-"));
  const common = { host: "127.0.0.1", port: 0, model: "tiny", timeScale: 20, engine: ENGINE };
  const engines = await Promise.all([1, 2, 3].map((seed) => startEmulator({ ...common, seed })));
  const doors = engines.map(({ url }) => new FakeRouter([url]));
  const urls = await Promise.all(doors.map((door) => door.start()));
  const given = {
    set: [
      `record.directory=${directory}`,
      "tap.envoy.port=0",
      "tap.envoy.plaintext=true",
      "tap.name=envoy",
      "scrape.intervalMillis=20",
      "listen.drainNoticeMillis=0",
      "listen.warmUpMillis=0",
      "listen.port=0",
      "listen.adminPort=0",
    ],
    endpoint: urls,
  };
  const stack = await startedGateway(servePlan(given, {}), {}, ["gateway", "observer", "endpoints"]);
  await until("the engines are there", () => stack.directory.all().every(({ state }) => state === "ready"));
  const port = await freePort();
  const ports = [
    [8000, port],
    [9003, stack.observer!.server.port],
    ...urls.map((url, i) => [8101 + i, Number(new URL(url).port)] as const),
  ] as const;
  const envoy = startEnvoy(t, change(onPorts(CONFIG, ports)));
  t.after(async () => {
    envoy.kill("SIGKILL");
    await once(envoy, "exit");
    await stack.close();
    for (const door of doors) await door.stop();
    for (const engine of engines) await engine.close();
    rmSync(directory, { recursive: true });
  });
  await listening(port);
  const went = (): Map<string, string> =>
    new Map(doors.flatMap((door, i) => [...door.went.keys()].map((id) => [id, urls[i]!] as const)));
  const items = async (): Promise<TraceItem[]> => {
    await stack.close();
    return itemsOf(directory);
  };
  const envoyPort = stack.observer!.server.port;
  return { url: `http://127.0.0.1:${port}`, stack, directory, went, items, urls, envoyPort };
}

/** Every request is in the trace, with its prompt, and where it really went. */
function assertPlaced(all: readonly TraceItem[], went: ReadonlyMap<string, string>, count: number): void {
  const arrived = all.flatMap((item) =>
    item.kind === "record" && item.input.kind === "request-arrived" ? [{ ...item, input: item.input }] : [],
  );
  assert.equal(arrived.length, count);
  for (const { input, decision } of arrived) {
    const id = input.request.id.split(".")[0]!;
    assert.equal(decision?.kind === "routed" ? decision.endpoint : "", went.get(id), id);
    assert.deepEqual([input.observed?.by, input.observed?.sure], ["header", 1]);
    assert.ok(input.request.blocks.length > 0);
  }
}

test("what an Envoy decides by itself is in the trace, which replays", { skip, timeout: 60_000 }, async (t) => {
  const { url, stack, went, items, directory } = await rig(t);
  await Promise.all(
    Array.from({ length: 24 }, async (_, i) => {
      const got = await ask(url, chat(i, i % 2 === 0));
      assert.equal(got.status, 200, got.body);
      if (i % 2 === 0) assert.match(got.body, /data: \[DONE\]/);
    }),
  );
  const { counts } = stack.intake as HeldIntake;
  await until("all are placed", () => counts.header === 24);
  const all = await items();
  const truth = went();
  assertPlaced(all, truth, 24);
  const { out, code, said } = await inProcess(t, [replayCommand()], ["replay", directory]);
  assert.equal(code, 0, said);
  assert.match(out, /24 decisions compared: all identical\n24 requests went where envoy sent them/);
  const run = await readRecordedRun(
    (async function* () {
      yield* all;
    })(),
  );
  assert.equal(run.workload.length, 24);
  const streamed = run.observed.filter(({ ttftMicros }) => ttftMicros > 0);
  assert.ok(streamed.length >= 12);
});

test("what a picker in the same Envoy decides is in the trace", { skip, timeout: 60_000 }, async (t) => {
  // Each request names its engine, as a picker's reply does.
  const picked = (config: string): string =>
    config
      .replace("lb_policy: LEAST_REQUEST", `lb_policy: CLUSTER_PROVIDED\n    ${BY_HEADER}`)
      .replace(
        /    type: STATIC\n    connect_timeout: 1s\n    lb_policy/,
        "    type: ORIGINAL_DST\n    connect_timeout: 1s\n    lb_policy",
      )
      .replace(/    load_assignment:\n      cluster_name: engines[\s\S]*$/, "");
  const { url, stack, went, items, urls } = await rig(t, picked);
  for (let i = 0; i < 12; i++) {
    const headers = { "x-gateway-destination-endpoint": new URL(urls[(i * i) % 3]!).host };
    const got = await ask(url, chat(i, i % 2 === 0), { headers });
    assert.equal(got.status, 200, got.body);
  }
  await until("all are placed", () => (stack.intake as HeldIntake).counts.header === 12);
  assertPlaced(await items(), went(), 12);
});

test("an Envoy that waits for replies gets them, and its requests go on", { skip, timeout: 60_000 }, async (t) => {
  const waits = (config: string): string => config.replace("observability_mode: true", "observability_mode: false");
  const { url, stack, went, items } = await rig(t, (config) =>
    waits(config).replace("              deferred_close_timeout: 1s\n", ""),
  );
  for (let i = 0; i < 8; i++) assert.equal((await ask(url, chat(i, i % 2 === 0))).status, 200);
  await until("all are placed", () => (stack.intake as HeldIntake).counts.header === 8);
  assertPlaced(await items(), went(), 8);
});

/** A tap of its own process. */
async function startTap(
  t: TestContext,
  directory: string,
  envoyPort: number,
  urls: readonly string[],
  adminPort = 0,
): Promise<ChildProcess> {
  const set = [
    `tap.envoy.port=${envoyPort}`,
    "tap.envoy.plaintext=true",
    `listen.adminPort=${adminPort}`,
    "listen.warmUpMillis=0",
  ];
  const args = ["tap", "--port", "0", "--record", directory, ...urls.flatMap((url) => ["--endpoint", url])];
  const all = [...args, ...set.flatMap((one) => ["--set", one])];
  const child = spawn(process.execPath, [join(import.meta.dirname, "../../../bin/gnomon.js"), ...all], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  t.after(() => child.kill("SIGKILL"));
  let said = "";
  for await (const piece of child.stdout) {
    said += String(piece);
    if (said.includes("ready beside Envoy")) break;
  }
  child.stdout.resume();
  return child;
}

test("a tap that is stopped, killed and back loses no request", { skip, timeout: 120_000 }, async (t) => {
  const { url, directory, urls, envoyPort, stack } = await rig(t);
  await stack.observer!.server.stop(0);
  const first = await startTap(t, join(directory, "first"), envoyPort, urls);
  const ten = (from: number): Promise<void[]> =>
    Promise.all(
      Array.from({ length: 10 }, async (_, i) => {
        const got = await ask(url, chat(from + i, i % 2 === 0));
        assert.equal(got.status, 200, got.body);
        if (i % 2 === 0) assert.match(got.body, /data: \[DONE\]/);
      }),
    );
  await ten(0);
  const whileStopped = ten(10);
  first.kill("SIGSTOP");
  await whileStopped;
  await ten(20);
  // Longer than what Envoy keeps of it: it is let go of by the connection's keepalive.
  const long = await ask(url, { ...chat(30, false), messages: [{ role: "user", content: "word ".repeat(600_000) }] });
  assert.equal(long.status, 400, "the engine's own refusal of its length");
  const whileKilled = ten(40);
  first.kill("SIGKILL");
  await whileKilled;
  await ten(50);
  const adminPort = await freePort();
  await startTap(t, join(directory, "second"), envoyPort, urls, adminPort);
  for (let placed = 0, i = 60; placed === 0; i++) {
    assert.equal((await ask(url, chat(i, true))).status, 200);
    const page = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
    placed = Number(/^gnomon_tap_places_total\{by="header"\} (\d+)/m.exec(page)?.[1]);
  }
});
