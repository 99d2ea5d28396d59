import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type TestContext, test } from "node:test";
import { answer, type StubEngine } from "../../live/discovery/stub-engine.ts";
import { answeringEngine } from "./answering-engine.ts";
import { gatewayHere } from "./gateway-here.ts";

const SERVE = ["--port", "0", "--log-level", "error"];

async function ask(url: string, content: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "tiny", messages: [{ role: "user", content }], max_tokens: 4 }),
  });
}

/** Two engines that answer anything at once, ready for a gateway in front of them. */
const engines = (t: TestContext): Promise<StubEngine[]> => Promise.all([answeringEngine(t), answeringEngine(t)]);

test("a routing-strategy that is unknown or not allowed is a 400 in OpenAI's form and reaches no engine", async (t) => {
  const both = await engines(t);
  const { url } = await gatewayHere(t, [
    ...SERVE,
    ...both.flatMap(({ url }) => ["--endpoint", url]),
    "--set",
    "routing.profilesAllowed=[round-robin, aibrix-least-request]",
  ]);
  const posts = () => both.flatMap(({ seen }) => seen).filter((line) => line.startsWith("POST /v1/chat")).length;
  const before = posts();
  for (const strategy of ["lmetric", "gnomon", "no-such-thing", "round-robin:2,lmetric:1", "constructor"]) {
    const refused = await ask(url, "Hello", { "routing-strategy": strategy });
    assert.equal(refused.status, 400, strategy);
    assert.match(refused.headers.get("content-type") ?? "", /^application\/json/);
    const body = (await refused.json()) as { error: Record<string, unknown> };
    assert.deepEqual(Object.keys(body), ["error"]);
    assert.deepEqual(Object.keys(body.error).toSorted(), ["code", "message", "param", "type"]);
    assert.equal(body.error["type"], "BadRequestError");
    assert.equal(body.error["param"], "routing-strategy");
    assert.match(
      String(body.error["message"]),
      /^Expected one of round-robin, .*aibrix-least-request in routing-strategy, got /,
      "it names what is accepted",
    );
  }
  assert.equal(posts(), before, "nothing that was refused went to an engine");
  const placed: (string | null)[] = [];
  for (let i = 0; i < 4; i++) {
    const allowed = await ask(url, "Hello", { "routing-strategy": "round-robin" });
    assert.equal(allowed.status, 200, await allowed.clone().text());
    placed.push(allowed.headers.get("x-gnomon-endpoint"));
  }
  assert.deepEqual([placed[0], placed[1]], [placed[2], placed[3]]);
  assert.notEqual(placed[0], placed[1]);
});

interface Gpu {
  readonly watts: number;
  readonly smActive: number;
}

const page = (gpus: readonly Gpu[]) =>
  gpus
    .map(({ watts, smActive }, i) => {
      const labels = `{gpu="${i}",UUID="GPU-${i}",Hostname="h"}`;
      return `DCGM_FI_DEV_POWER_USAGE${labels} ${watts}\nDCGM_FI_PROF_SM_ACTIVE${labels} ${smActive}\n`;
    })
    .join("");

test("what a DCGM exporter reports of the GPUs decides under cognitora, and turns when it turns", async (t) => {
  const both = await engines(t);
  let gpus: readonly Gpu[] = [];
  const exporter = createServer((_request, response) => response.end(page(gpus)));
  await new Promise<void>((resolve) => exporter.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    exporter.close();
    exporter.closeAllConnections();
  });
  const devices = Object.fromEntries(both.map(({ url }, i) => [url, { Hostname: "h", gpu: String(i) }]));
  const { url } = await gatewayHere(t, [
    ...SERVE,
    "--profile",
    "cognitora",
    ...both.flatMap(({ url }) => ["--endpoint", url]),
    "--set",
    `power.exporters=["http://127.0.0.1:${(exporter.address() as AddressInfo).port}/metrics"]`,
    "--set",
    `power.devices=${JSON.stringify(devices)}`,
    "--set",
    "power.intervalMillis=100",
    "--set",
    "scrape.intervalMillis=50",
  ]);
  let asked = 0;
  /** Asks what nobody has asked before until the choice is the one given. */
  const settlesOn = async (engine: StubEngine): Promise<void> => {
    const deadline = Date.now() + 60_000;
    for (let inRow = 0; inRow < 5;) {
      assert.ok(Date.now() < deadline, "the choice follows the exporter");
      const got = await ask(url, `${asked++} Hi`);
      assert.equal(got.status, 200, await got.clone().text());
      inRow = got.headers.get("x-gnomon-endpoint") === engine.url ? inRow + 1 : 0;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  gpus = [
    { watts: 600, smActive: 0.2 },
    { watts: 100, smActive: 0.2 },
  ];
  await settlesOn(both[1]!);
  gpus = [
    { watts: 600, smActive: 0.1 },
    { watts: 100, smActive: 0.9 },
  ];
  await settlesOn(both[0]!);
  gpus = [
    { watts: 600, smActive: 0.9 },
    { watts: 100, smActive: 0.9 },
  ];
  await settlesOn(both[1]!);
});

test("without an exporter nothing that a GPU does distinguishes the same engines", async (t) => {
  const both = await engines(t);
  for (const engine of both) engine.metrics = answer(200, "");
  const { url, adminUrl } = await gatewayHere(t, [
    ...SERVE,
    "--profile",
    "cognitora",
    ...both.flatMap(({ url }) => ["--endpoint", url]),
  ]);
  assert.equal((await ask(url, "Hi")).status, 200);
  const decisions = (await (await fetch(`${adminUrl}/gnomon/decisions?n=1`)).json()) as { decisions: unknown[] };
  assert.match(JSON.stringify(decisions.decisions[0]), /"power"/);
});
