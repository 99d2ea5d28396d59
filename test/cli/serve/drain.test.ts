import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { type TestContext, test } from "node:test";
import { type CommandLine, gnomon } from "../command-line.ts";

const SERVE = ["--port", "0", "--set", "emulate.count=1", "--log-level", "error"];
const READY = /gnomon is ready at (http:\S+):/;

/** A stream of some seconds from an engine at its true pace, once its first bytes are here. */
async function begunStream(url: string, tokens: number): Promise<{ readonly whole: Promise<string> }> {
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: "llama-3.1-8b",
      messages: [{ role: "user", content: "Hello" }],
      max_tokens: tokens,
      ignore_eos: true,
      stream: true,
    }),
  });
  assert.equal(answer.status, 200);
  return { whole: answer.text() };
}

function assertWhole(stream: string, tokens: number): void {
  assert.match(stream, /"finish_reason":"length"/);
  assert.match(stream, /data: \[DONE\]\n\n$/);
  assert.equal(stream.match(/"delta":\{"content"/g)?.length, tokens);
}

async function serve(t: TestContext, ...more: string[]): Promise<{ served: CommandLine; url: string }> {
  const served = gnomon(t, [...SERVE, ...more], { KUBERNETES_SERVICE_HOST: undefined });
  const [, url = ""] = await served.said(READY);
  return { served, url };
}

test("a terminal that closes drains the gateway: the stream in flight comes whole, and the exit code is 0", async (t) => {
  const { served, url } = await serve(t);
  const stream = await begunStream(url, 150);
  served.child.kill("SIGHUP");
  served.child.kill("SIGHUP");
  assertWhole(await stream.whole, 150);
  assert.deepEqual(await served.exit, { code: 0, signal: null }, served.stderr());
});

test("asked to stop, readiness fails first, requests are taken until the notice is over, and metrics until the end", async (t) => {
  const { served, url } = await serve(t, "--set", "listen.drainNoticeMillis=1500");
  served.child.kill("SIGTERM");
  while ((await fetch(`${url}/readyz`)).status !== 503) continue;
  const stream = await begunStream(url, 500);
  // A connection kept alive may be closed under a request when the notice ends, as with every HTTP server.
  const ask = () =>
    fetch(`${url}/v1/completions`, { method: "POST", body: "{}" }).catch((error: unknown) => {
      if (served.child.exitCode !== null) throw error;
      return undefined;
    });
  const late = await until(ask, (answer) => answer?.headers.get("x-gnomon-reason") === "draining");
  assert.equal(late?.status, 503);
  assert.equal(late?.headers.get("connection"), "close");
  assert.match(await (await fetch(`${url}/metrics`)).text(), /^gnomon_requests_total/m);
  assert.equal((await fetch(`${url}/healthz`)).status, 200);
  assertWhole(await stream.whole, 500);
  assert.deepEqual(await served.exit, { code: 0, signal: null }, served.stderr());
  await assert.rejects(fetch(`${url}/healthz`));
});

test("an emulated fleet that is hung up ends as it does when it is terminated", async (t) => {
  const fleet = gnomon(t, ["emulate", "--count", "1", "--port-base", "0"]);
  await fleet.said(/gnomon emulates/);
  fleet.child.kill("SIGHUP");
  assert.deepEqual(await fleet.exit, { code: 0, signal: null }, fleet.stderr());
});

/** Processes that a process started. */
function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
}

const alive = (pid: number): boolean => existsSync(`/proc/${pid}`);

test("each engine of an emulated fleet is a process: one is killed, the other serves, and none outlives a killed parent", async (t) => {
  if (!existsSync("/proc/self")) return t.skip("needs /proc");
  const fleet = gnomon(t, ["emulate", "--count", "2", "--port-base", "0"]);
  const [, list = ""] = await fleet.said(/gnomon emulates \S+ at (.*)\n/);
  const urls = list.split(" ");
  const engines = childrenOf(fleet.child.pid!);
  const isUp = (url: string) =>
    fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  assert.deepEqual(await Promise.all(urls.map(isUp)), [true, true]);
  process.kill(engines[1]!, "SIGKILL");
  await until(
    () => Promise.resolve(fleet.stderr()),
    (text) => text.includes("ended (SIGKILL)"),
  );
  assert.equal((await Promise.all(urls.map(isUp))).filter(Boolean).length, 1);
  assert.equal(fleet.child.exitCode, null);
  fleet.child.kill("SIGKILL");
  await fleet.exit;
  await until(
    () => new Promise<void>((resolve) => void setTimeout(resolve, 20)),
    () => !engines.some(alive),
  );
});

async function until<T>(ask: () => Promise<T>, good: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await ask();
    if (good(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
