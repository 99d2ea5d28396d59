import assert from "node:assert/strict";
import { test } from "node:test";
import { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import { loadProfile } from "#config/profile-file.ts";
import { readyText } from "#serve/ready/ready-text.ts";
import { gnomon } from "../command-line.ts";
import { answeringEngine } from "./answering-engine.ts";
import { emulatedHere } from "./emulated-here.ts";

type Line = Readonly<Record<string, unknown>>;

const SECRET = "sk-very-secret";
const PROMPT = "the words of the prompt";

function linesOf(text: string): Line[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Line);
}

async function chat(url: string, model: string): Promise<Response> {
  const body = JSON.stringify({ model, messages: [{ role: "user", content: PROMPT }], max_tokens: 8 });
  const headers = { "content-type": "application/json", authorization: `Bearer ${SECRET}`, "x-request-id": "mine" };
  return fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body });
}

test("where stdout is no terminal all is JSON: ready, each request, joins, draining, drained, stopped", async (t) => {
  const engines = await emulatedHere(t, 2);
  const flags = ["--port", "0", ...engines.flatMap((url) => ["--endpoint", url]), "--set", "log.access=stdout"];
  const served = gnomon(t, flags, { KUBERNETES_SERVICE_HOST: undefined });
  const [, url = ""] = await served.said(/"url":"([^"]+)"/);
  const answer = await chat(url, "llama-3.1-8b");
  await answer.text();
  await (await chat(url, "unknown")).text();
  served.child.kill("SIGTERM");
  assert.equal((await served.exit).code, 0, served.stderr());

  const [ready, request, refused, ...more] = linesOf(served.stdout());
  assert.deepEqual(more, []);
  assert.deepEqual(Object.keys(ready!), [
    "level",
    "time",
    "event",
    "url",
    "adminUrl",
    "endpoints",
    "endpointsKnown",
    "emulated",
    "profile",
    "models",
    "msg",
  ]);
  assert.deepEqual([ready!["event"], ready!["endpoints"], ready!["profile"]], ["ready", 2, "gnomon"]);
  assert.match(String(request!["time"]), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  const { time: _, durationMillis, ttftMillis, endpoint, ...rest } = request!;
  assert.ok(Number(durationMillis) > 0 && Number(ttftMillis) > 0);
  assert.equal(endpoint, answer.headers.get("x-gnomon-endpoint"));
  assert.deepEqual(rest, {
    level: "info",
    event: "request",
    requestId: "mine",
    method: "POST",
    route: "/v1/chat/completions",
    model: "llama-3.1-8b",
    status: 200,
    outcome: "ok",
    profile: "gnomon",
    reason: "tie",
    stream: false,
    retries: 0,
    promptTokens: rest["promptTokens"],
    cachedTokens: 0,
    outputTokens: 8,
    hitTokens: 0,
  });
  assert.deepEqual([refused!["status"], refused!["reason"], refused!["profile"]], [404, "unknown-model", ""]);

  const log = linesOf(served.stderr());
  const events = log.map(({ event }) => event);
  assert.equal(events.filter((event) => event === "endpoint-ready").length, 2);
  assert.deepEqual(events.slice(-3), ["draining", "drained", "stopped"]);
  assert.equal(log.at(-2)!["requestsCut"], 0);
  for (const { level, time, event, done } of log) {
    assert.ok(level === "info" || level === "warn", String(level));
    assert.match(String(time), /^\d{4}-\d\d-\d\dT/);
    if (String(event).startsWith("endpoint-")) assert.notEqual(done ?? "", "");
  }
  for (const text of [served.stdout(), served.stderr()]) {
    assert.ok(!text.includes(SECRET) && !text.includes(PROMPT));
  }
});

test("a fleet that is gone is reported line by line, with what was done, and not once per request", async (t) => {
  const engine = await answeringEngine(t, "llama-3.1-8b");
  const times = ["--set", "scrape.staleAfterMillis=1000", "--set", "scrape.lostAfterMillis=2000"];
  const served = gnomon(t, ["--port", "0", "--endpoint", engine.url, ...times]);
  const [, url = ""] = await served.said(/"url":"([^"]+)",.*"endpoints"/);
  await engine.kill();
  const seen = (event: string): Line | undefined =>
    served
      .stderr()
      .split("\n")
      .filter((line) => line.endsWith("}"))
      .map((line) => JSON.parse(line) as Line)
      .find((line) => line["event"] === event);
  for (let i = 0; i < 60; i++) await (await chat(url, "llama-3.1-8b")).text();
  while (seen("endpoint-lost") === undefined) await new Promise((resolve) => setTimeout(resolve, 50));
  const failed = seen("attempt-failed")!;
  assert.match(String(failed["detail"]), /^connect/);
  assert.match(String(failed["done"]), /the client got 50[23]/);
  assert.match(String(seen("signals-stale")?.["done"]), /own count/);
  served.child.kill("SIGTERM");
  await served.exit;
  const counted = linesOf(served.stderr()).filter((line) => line["event"] === "attempt-failed");
  assert.ok(counted.length <= 42, `${counted.length} lines`);
});

test("at a terminal the first lines hold a command to paste", () => {
  const directory = new EndpointDirectory();
  const models = [{ id: "it's", object: "model", owned_by: "vllm" }] as never;
  directory.add({ id: "a", url: "http://a", state: "ready", detail: "", models } as never);
  const plan = { profile: loadProfile("gnomon"), config: { tap: { envoy: {} } } } as never;
  const [ready, curl, pages] = readyText(directory, {
    url: "http://h:1",
    adminUrl: "http://h:2",
    plan,
    emulated: true,
  }).split("\n");
  assert.equal(ready, "gnomon is ready at http://h:1: 1 emulated engine, profile gnomon");
  const body = `{"model":"it'\\''s","messages":[{"role":"user","content":"Hello"}],"max_tokens":32}`;
  assert.equal(curl, `  curl http://h:1/v1/chat/completions -H 'content-type: application/json' -d '${body}'`);
  assert.match(pages!, /http:\/\/h:1\/metrics .*http:\/\/h:2\/gnomon\//);
  // Those that are not ready yet are counted as well.
  directory.add({ id: "b", url: "http://b", state: "waiting", detail: "", models: [] } as never);
  const facts = { url: "http://h:1", adminUrl: "http://h:2", plan, emulated: false };
  assert.match(readyText(directory, facts), /^gnomon is ready at http:\/\/h:1: 1 of 2 engines, profile gnomon\n/);
});
