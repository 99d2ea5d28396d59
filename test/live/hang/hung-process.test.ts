import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { gatewayHere } from "../../cli/serve/gateway-here.ts";
import { Conversation } from "./conversation.ts";
import { startEngine } from "./engine-process.ts";
import { SwitchedEngine } from "./switched-engine.ts";

/**
 * Begun streams are cut; and judged sooner than by default. A busy machine may be judged to hang too; requests are
 * answered all the same.
 */
const SOON = [
  "scrape.intervalMillis=250",
  "scrape.timeoutMillis=400",
  "health.silentMillis=1500",
  "health.unansweredMillis=1500",
  "health.stalledMillis=1500",
  "health.returnMillis=500",
  "health.returnMillisMax=1000",
  "limits.cutMillisMax=1500",
  "clients.continueStreams=false",
].flatMap((setting) => ["--set", setting]);
const WAIT_MILLIS_MAX = 60_000;

interface Endpoint {
  readonly id: string;
  readonly standing: string | null;
}

async function serve(t: TestContext, urls: readonly string[]) {
  const endpoints = urls.flatMap((url) => ["--endpoint", url]);
  const flags = ["--port", "0", "--log-level", "info", ...SOON, ...endpoints];
  const { url, adminUrl, log } = await gatewayHere(t, flags);
  const standing = async (id: string): Promise<string | null | undefined> => {
    const { endpoints } = (await (await fetch(`${adminUrl}/gnomon/endpoints`)).json()) as { endpoints: Endpoint[] };
    return endpoints.find((endpoint) => endpoint.id === id)?.standing;
  };
  return { log, url, standing };
}

/** Asks until a request goes there again and is answered: many at once, since an idle engine that is quicker gets single ones. */
async function usedAgain(talk: Conversation, endpoint: string): Promise<void> {
  const until = performance.now() + WAIT_MILLIS_MAX;
  while (performance.now() < until) {
    const turns = await talk.askAll(12);
    for (const { status } of turns) assert.equal(status, 200);
    if (turns.some((turn) => turn.endpoint === endpoint && turn.whole)) return;
  }
  assert.fail(`${endpoint} is not used again within ${WAIT_MILLIS_MAX} ms`);
}

test("an engine's process is stopped: its conversation goes on elsewhere, begun streams are cut; let go on, it is used", async (t) => {
  const engines = await Promise.all([startEngine(t), startEngine(t)]);
  const { log, url, standing } = await serve(
    t,
    engines.map((engine) => engine.url),
  );
  const talk = new Conversation(url, "llama-3.1-8b", "apple");
  const holder = await talk.settle();
  const engine = engines.find((one) => one.url === holder)!;
  const long = await talk.begin(5_000);
  assert.equal(long.headers.get("x-gnomon-endpoint"), holder);
  engine.hang();
  const turns = await talk.askAll(12);
  for (const { status, whole, endpoint, millis } of turns) {
    assert.deepEqual([status, whole, endpoint !== holder], [200, true, true]);
    assert.ok(millis < WAIT_MILLIS_MAX, `${millis} ms`);
  }
  const cut = await long.text();
  assert.match(cut, /"error"/);
  assert.doesNotMatch(cut, /\[DONE\]/);
  assert.equal(await standing(holder), "hung");
  engine.goOn();
  await usedAgain(talk, holder);
  assert.match(log(), /"event":"endpoint-hung".*"event":"endpoint-returning"/s);
});

for (const answers of ["health", "no-requests"] as const)
  test(`an engine accepts everything and answers ${answers === "health" ? "its health check alone" : "all but requests"}`, async (t) => {
    const engines = await Promise.all([SwitchedEngine.start(t), SwitchedEngine.start(t)]);
    const { log, url, standing } = await serve(
      t,
      engines.map((engine) => engine.url),
    );
    const talk = new Conversation(url, "tiny", "pear");
    const holder = await talk.settle();
    const engine = engines.find((one) => one.url === holder)!;
    engine.answers = answers;
    const turns = await talk.askAll(12);
    for (const { status, whole, endpoint, millis } of turns) {
      assert.deepEqual([status, whole, endpoint !== holder], [200, true, true]);
      assert.ok(millis < WAIT_MILLIS_MAX, `${millis} ms`);
    }
    assert.notEqual(await standing(holder), "well");
    engine.answers = "all";
    await usedAgain(talk, holder);
    assert.match(log(), /"event":"endpoint-hung"/);
  });
