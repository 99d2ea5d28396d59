import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Router } from "#core/router.ts";
import { TraceReader } from "#trace/reader.ts";
import { breakdownDigest } from "#trace/codec/record.ts";
import { newRouter } from "#serve/policy/live-router.ts";
import { gnomon, takenPort } from "../command-line.ts";
import { answeringEngine } from "./answering-engine.ts";
import { gatewayHere } from "./gateway-here.ts";

/** Engines that answer at once, so that a test waits for the command line and not for tokens. */
const FAST = ["--port", "0", "--set", "emulate.timeScale=1000", "--set", "emulate.count=2", "--log-level", "error"];
/** Each of them is a process. */
const ONE = ["--set", "emulate.count=1"];
const READY = /gnomon is ready at (http:\S+): ([^"]*)"/;

async function ask(url: string, model: string, stream = false): Promise<Response> {
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }], max_tokens: 8, stream });
  return fetch(`${url}/v1/chat/completions`, { method: "POST", headers: { "content-type": "application/json" }, body });
}

test("serve starts a fleet, answers, records, and an interrupt drains it and ends with 0; the trace replays", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-serve-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const policy = join(import.meta.dirname, "../../golden/cli/policy.yaml");
  // The one start of all tests whose warm-up is as long as it ships.
  const asShipped = { GNOMON_LISTEN_WARM_UP_MILLIS: undefined };
  const served = gnomon(t, [...FAST, "--record", directory, "--policy-config", policy], asShipped);
  const [, url = "", what = ""] = await served.said(READY);
  assert.equal(what, "2 emulated engines, profile weighted");
  const answer = await ask(url, "llama-3.1-8b");
  assert.equal(answer.status, 200);
  const streams = [1, 2, 3].map(() => ask(url, "llama-3.1-8b", true).then((response) => response.text()));
  assert.match(await (await fetch(`${url}/metrics`)).text(), /^gnomon_requests_total\{.*status="200".*\} 1$/m);
  for (const text of await Promise.all(streams)) assert.match(text, /data: \[DONE\]\n\n$/);
  // Its head shows that the gateway has it.
  const slow = (await ask(url, "llama-3.1-8b", true)).text();
  served.child.kill("SIGINT");
  assert.match(await slow, /data: \[DONE\]\n\n$/);
  assert.deepEqual(await served.exit, { code: 0, signal: null }, served.stderr());
  assert.equal(served.stderr(), "");
  const kinds = await replay(directory);
  assert.equal(kinds.get("endpoint-joined"), 2);
  assert.equal(kinds.get("request-arrived"), 5);
  assert.equal(kinds.get("request-finished"), 5);
});

test("a warm-up of gateway and picker moves no counter, charges nothing, and leaves the prefix index empty", async (t) => {
  const engine = await answeringEngine(t);
  const flags = ["--port", "0", "--endpoint", engine.url, "--set", "picker.port=0", "--log-level", "debug"];
  const counted = async (warmUpMillis: string): Promise<readonly [readonly string[], number]> => {
    const { adminUrl, log } = await gatewayHere(t, flags, { GNOMON_LISTEN_WARM_UP_MILLIS: warmUpMillis });
    const picked = Number(/"picked":(\d+)/.exec(log())?.[1] ?? 0);
    return [moved(await (await fetch(`${adminUrl}/metrics`)).text()), picked];
  };
  const [cold, none] = await counted("0");
  const [warm, picked] = await counted("400");
  assert.equal(none, 0);
  assert.ok(picked > 100, `${picked} made-up questions were answered`);
  assert.deepEqual(warm, cold);
});

/** Names of counts of requests, decisions and tokens above 0, and what the index and the ledger hold. */
function moved(metrics: string): readonly string[] {
  const rows = metrics.matchAll(/^(gnomon_\w+)(?:\{[^}]*\})? (\S+)$/gm);
  const above = [...rows].filter(([, name = "", value]) => Number(value) > 0 && COUNTED.test(name));
  return [...new Set(above.map(([, name = ""]) => name))].filter((name) => !OF_OTHERS.test(name)).toSorted();
}

const COUNTED = /_(?:total|count)$|prefix_index|_in_flight|charges/;
/** What goes on at each engine and in the process whoever asks. */
const OF_OTHERS = /scrape|event_loop|gnomon_nodejs|gnomon_process/;

/** Makes every recorded decision again and counts the inputs by kind. */
async function replay(directory: string): Promise<Map<string, number>> {
  const kinds = new Map<string, number>();
  let router: Router | undefined;
  for await (const item of new TraceReader(directory, { strict: true }).items()) {
    assert.notEqual(item.kind, "gap");
    if (item.kind === "run") router = newRouter(item.header.router);
    if (item.kind !== "record") continue;
    kinds.set(item.input.kind, (kinds.get(item.input.kind) ?? 0) + 1);
    const made = router?.accept(item.input);
    assert.equal(made?.kind, item.decision?.kind);
    if (made === undefined || item.decision === undefined) continue;
    const { breakdown: seen, ...decision } = item.decision;
    const { breakdown, ...again } = made;
    assert.deepEqual(again, decision);
    assert.equal(breakdownDigest(breakdown), seen.digest);
  }
  return kinds;
}

test("an endpoint that is not there is waited for, and reported, and a stop signal ends the wait with 0", async (t) => {
  const served = gnomon(t, ["--endpoint", "http://127.0.0.1:9", "--port", "0"]);
  const [, url = "", why = ""] = await served.said(/gnomon listens at (\S+) and waits for ([^"]*)"/);
  assert.match(why, /endpoint http:\/\/127\.0\.0\.1:9 \(waiting\): .*cannot connect/);
  const ready = await fetch(`${url}/readyz`);
  assert.equal(ready.status, 503);
  assert.match(((await ready.json()) as { waitsFor: string[] }).waitsFor.join(), /127\.0\.0\.1:9/);
  const refused = await ask(url, "m");
  assert.equal(refused.status, 503);
  served.child.kill("SIGTERM");
  assert.equal((await served.exit).code, 0);
});

test("a later interrupt ends at once, whatever is still being answered", async (t) => {
  const served = gnomon(t, [...FAST, ...ONE, "--set", "emulate.timeScale=0.01"]);
  const [, url = ""] = await served.said(READY);
  const cut = assert.rejects(ask(url, "llama-3.1-8b", true).then((response) => response.text()));
  await assert.doesNotReject(fetch(`${url}/healthz`));
  served.child.kill("SIGINT");
  await until(async () => (await fetch(`${url}/readyz`).catch(() => undefined))?.status !== 200);
  // One that comes with the first is the same, forwarded by a parent.
  const again = setInterval(() => served.child.kill("SIGINT"), 100);
  const { code } = await served.exit;
  clearInterval(again);
  assert.equal(code, 130);
  await cut;
});

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20));
}

test("a port in use is one line and exit code 1, and so is a fleet that does not start", async (t) => {
  const { server, port } = await takenPort();
  t.after(() => server.close());
  const busy = gnomon(t, ["--port", String(port), "--log-level", "error"]);
  const administered = gnomon(t, [...FAST, ...ONE, "--admin-port", String(port)]);
  const fleet = gnomon(t, [...FAST, ...ONE, "--set", "emulate.engine=nothing"]);
  assert.equal((await busy.exit).code, 1);
  const refusal = `cannot listen on 127.0.0.1:${port}: the address is in use; choose another with --host and --port`;
  assert.equal(busy.stderr(), `gnomon: ${refusal}\n`);
  assert.equal((await administered.exit).code, 1);
  assert.match(
    administered.stderr(),
    /:\d+, for status pages and administration: the address is in use; choose another with --admin-port\n$/,
  );
  assert.equal((await fleet.exit).code, 1);
  assert.match(fleet.stderr(), /^gnomon: the emulated fleet did not start: engine: expected one of .*\n$/);
});
