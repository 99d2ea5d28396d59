import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { BroadcastChannel } from "node:worker_threads";
import { servePlan } from "#cli/serve/serve-options.ts";
import { nowMicros } from "#live/clock.ts";
import { EndpointDirectory } from "#live/discovery/endpoint-directory.ts";
import { createGateway } from "#live/gateway.ts";
import type { FaultEvent } from "#live/log/fault-log.ts";
import { RouterTap } from "#live/router-tap.ts";
import { HangWatch } from "#live/upstream/hang-watch.ts";
import { WorkerSigns } from "#live/worker/worker-signs.ts";
import { newRouter, routerSettings } from "#serve/live-router.ts";
import { LiveWorkloads } from "#serve/live-workloads.ts";
import { workersOf } from "#serve/worker/workers-of.ts";
import { IDENTITY, WORD_TOKENIZER } from "../../live/gateway/rig.ts";

/** A thread loads all of the gateway's code, which takes seconds where others work. */
async function until(what: string, holds: () => boolean): Promise<void> {
  const deadline = performance.now() + 60_000;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`never happened: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const EVENT = 'data: {"choices":[{"index":0,"text":"t","finish_reason":null}]}\n\n';

test("a worker that dies takes its own streams with it and no other; their charges are released, and it is started again", async (t) => {
  let held = true;
  const engine = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(EVENT);
    if (!held) response.end("data: [DONE]\n\n");
  });
  await new Promise<void>((resolve) => engine.listen(0, "127.0.0.1", resolve));
  const id = `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
  const plan = servePlan({ set: ["listen.workers=2", "listen.warmUpMillis=0", "clients.continueStreams=false"] }, {});
  const settings = routerSettings(plan);
  const tap = new RouterTap(newRouter(settings));
  const directory = new EndpointDirectory();
  const models = [{ id: "tiny", object: "model" as const }];
  directory.add({ id, url: id, dataParallelRank: undefined, apiKey: undefined, state: "ready", detail: "", models });
  const endpoint = { id, models: ["tiny"], labels: {}, kvCapacityTokens: undefined, concurrencyMax: undefined };
  tap.accept({ kind: "endpoint-joined", at: nowMicros(), endpoint });
  const faults: FaultEvent[] = [];
  const observe = { finished: () => {}, retried: () => {}, tokenizerFellBack: () => {} };
  const signs = new WorkerSigns(new HangWatch({ tap, directory }));
  const own = createGateway({
    tap,
    directory,
    observe,
    hangs: signs,
    identity: IDENTITY,
    tokenizer: () => WORD_TOKENIZER,
  });
  const workers = workersOf(plan.config, { counts: () => [] });
  const gateway = workers.before(own, {
    config: plan.config,
    secret: new Uint8Array(32),
    settings,
    tap,
    signs,
    observe,
    directory,
    policy: { keeper: { inForce: plan }, workloads: new LiveWorkloads(false) },
    report: (event) => void faults.push(event),
    script: new URL("./crashing.worker.ts", import.meta.url),
  });
  t.after(async () => {
    await gateway.close(0);
    engine.closeAllConnections();
    engine.close();
  });
  const { url } = await gateway.listen("127.0.0.1", 0);
  const status = () => workers.metrics.workers!();
  const ask = async (n: number): Promise<string> => {
    const body = JSON.stringify({ model: "tiny", prompt: `question ${n}`, stream: true });
    const headers = { "content-type": "application/json", connection: "close" };
    const response = await fetch(`${url}/v1/completions`, { method: "POST", headers, body });
    assert.equal(response.status, 200);
    return response.text();
  };
  const streams = Array.from({ length: 24 }, (_, n) => ask(n).catch(() => "cut"));
  let over = 0;
  for (const stream of streams) void stream.then(() => over++);
  await until("all streams are there", () => tap.router.openCharges === 24);
  const [first, second] = status().workers.map(({ requestsInFlight }) => requestsInFlight);
  assert.equal(first! + second!, 24);
  const crash = new BroadcastChannel("crash-worker-1");
  crash.postMessage("now");
  crash.close();
  await until("one worker died", () => status().requestsLost === first);
  assert.equal(tap.router.openCharges, second, "the others' streams go on");
  assert.deepEqual(
    faults.map(({ kind, detail }) => `${kind}: ${detail}`),
    ["worker-died: on purpose"],
  );
  await until("it was started again", () => status().workers.every(({ isUp }) => isUp));
  assert.equal(status().restarts, 1);
  held = false;
  assert.deepEqual(
    new Set(await Promise.all(Array.from({ length: 24 }, (_, n) => ask(100 + n)))),
    new Set([`${EVENT}data: [DONE]\n\n`]),
  );
  // Workers report an end after its client has it.
  await until("new streams are released", () => tap.router.openCharges === second);
  assert.equal(over, first, "the worker's own, and none since");
  engine.closeAllConnections();
  assert.ok((await Promise.all(streams)).every((text) => !text.includes("[DONE]")));
  await until("the ledger is empty", () => tap.router.inFlight === 0);
  assert.equal(tap.router.openCharges, 0);
});
