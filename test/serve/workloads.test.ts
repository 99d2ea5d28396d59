import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { stringify } from "yaml";
import { servePlan } from "#cli/serve/serve-options.ts";
import type { Input } from "#core/input/input.ts";
import { ModelRewrites } from "#live/discovery/workload-rules.ts";
import { staticTargets } from "#live/discovery/static.ts";
import { type StartedGateway, startedGateway } from "./started-gateway.ts";
import { until } from "../live/discovery/fleet-under-test.ts";
import {
  type RawRequest,
  STREAM_END,
  STREAM_HEAD,
  StubEngine,
  chatAnswer,
  event,
  jsonReply,
} from "../live/gateway/stub-engine.ts";

const POOL = { name: "llama", group: "inference.networking.k8s.io" };
const REWRITES = new ModelRewrites(
  [
    {
      metadata: { name: "canary" },
      spec: {
        poolRef: POOL,
        rules: [
          { matches: [{ model: { value: "chat" } }], targets: [{ modelRewrite: "base" }, { modelRewrite: "new" }] },
        ],
      },
    },
  ],
  POOL,
);

interface Running {
  readonly stack: StartedGateway;
  readonly inputs: Input[];
  readonly received: () => RawRequest[];
  readonly ask: (headers: Record<string, string>, more?: object) => Promise<number>;
  readonly lastText: () => string;
}

/** A whole gateway that follows a pool's workloads, and one engine with two models. */
async function running(t: TestContext): Promise<Running> {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-workloads-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "config.yaml");
  const discovery = { kind: "kubernetes", pool: "llama", workloads: "llm-d.ai" };
  const listen = { drainNoticeMillis: 0, warmUpMillis: 0 };
  writeFileSync(
    file,
    stringify({ listen, discovery, admission: { shedAt: 0.5, classes: { batch: -1, standard: 3 } } }),
  );
  const models = { object: "list", data: [{ id: "base" }, { id: "new" }] };
  const engine = await new StubEngine((request, socket) => {
    if (!request.path.startsWith("/v1/chat")) return void socket.write(jsonReply(200, models));
    const { model, stream } = JSON.parse(String(request.body)) as { model: string; stream?: boolean };
    const data = { id: "c", model, choices: [{ index: 0, delta: { content: "x" }, finish_reason: "stop" }] };
    if (stream === true) socket.write(STREAM_HEAD + event(data) + event(data) + event("[DONE]") + STREAM_END);
    else socket.write(jsonReply(200, { ...(chatAnswer("x") as object), model }));
  }).start();
  t.after(() => engine.kill());
  const stack = await startedGateway(servePlan({ config: file, set: [] }, {}));
  t.after(() => stack.close());
  const inputs: Input[] = [];
  stack.intake.listen({ accepted: (input) => void inputs.push(input) });
  stack.keeper.setTargets("static", staticTargets([{ url: engine.url }]));
  await until("known", () => inputs.some(({ kind }) => kind === "endpoint-joined"));
  const { url } = await stack.gateway.listen("127.0.0.1", 0);
  let lastText = "";
  const ask = async (headers: Record<string, string>, more: object = {}): Promise<number> => {
    const body = JSON.stringify({ model: "base", messages: [{ role: "user", content: "hi" }], ...more });
    const init = { method: "POST", headers: { "content-type": "application/json", ...headers }, body };
    const answer = await fetch(`${url}/v1/chat/completions`, init);
    lastText = await answer.text();
    return answer.status;
  };
  return {
    stack,
    inputs,
    received: () => engine.requests.filter(({ path }) => path.startsWith("/v1/chat")),
    ask,
    lastText: () => lastText,
  };
}

test("objectives are classes of the policy in force, by either header, and 0 where none is known", async (t) => {
  const { stack, inputs, ask } = await running(t);
  stack.policy.workloads.set({ priorities: { urgent: 5, batch: -7 }, rewrites: ModelRewrites.none });
  stack.policy.workloads.set({ priorities: { batch: -7, urgent: 5 }, rewrites: ModelRewrites.none });
  const changes = inputs.filter(({ kind }) => kind === "policy-changed");
  assert.equal(changes.length, 1, "the same priorities in another order are no change");
  const [change] = changes;
  assert.ok(change?.kind === "policy-changed");
  assert.deepEqual(change.admission?.classes, { scores: { batch: -7, standard: 3, urgent: 5 }, defaultScore: 0 });
  assert.deepEqual([change.version, change.source], [1, "inference-objectives"]);
  assert.equal(change.defaultProfile, stack.policy.keeper.inForce.profile.name);
  assert.equal(await ask({ "x-gateway-inference-objective": "urgent" }), 200);
  assert.equal(await ask({ "x-llm-d-inference-objective": "batch", "x-gnomon-slo-class": "standard" }), 200);
  assert.equal(await ask({ "x-gnomon-slo-class": "standard" }), 200);
  const asked = inputs.flatMap((input) => (input.kind === "request-arrived" ? [input.request.sloClass] : []));
  assert.deepEqual(asked, ["urgent", "batch", "standard"]);
  const patch = { admission: { classes: { batch: -1, standard: 2 } } };
  assert.equal(stack.policy.admin.change(patch, "merge", BY).outcome, "applied");
  const last = inputs.findLast(({ kind }) => kind === "policy-changed");
  assert.ok(last?.kind === "policy-changed");
  assert.deepEqual(
    last.admission?.classes.scores,
    { batch: -7, standard: 2, urgent: 5 },
    "objectives outlive a change",
  );
});

test("a rewritten model is the one that is routed, and that the engine is asked for; a conversation keeps it", async (t) => {
  const { stack, inputs, received, ask } = await running(t);
  assert.equal(await ask({}, { model: "chat" }), 404);
  stack.policy.workloads.set({ priorities: {}, rewrites: REWRITES });
  const models = new Set<string>();
  for (let session = 0; session < 12; session++) {
    for (let turn = 0; turn < 2; turn++) {
      assert.equal(await ask({ "x-session-id": `s${session}` }, { model: "chat" }), 200);
    }
    const [first, second] = received()
      .slice(-2)
      .map(({ body }) => (JSON.parse(String(body)) as { model: string }).model);
    assert.equal(first, second);
    models.add(first!);
  }
  assert.deepEqual([...models].sort(), ["base", "new"]);
  const routed = inputs.flatMap((input) => (input.kind === "request-arrived" ? [input.request.model] : []));
  assert.ok(routed.slice(1).every((model) => models.has(model)));
});

test("the answer to a rewritten request names the model that its client asked for, whole and in every event", async (t) => {
  const { stack, received, ask, lastText } = await running(t);
  stack.policy.workloads.set({ priorities: {}, rewrites: REWRITES });
  assert.equal(await ask({}, { model: "chat" }), 200);
  assert.notEqual((JSON.parse(String(received().at(-1)!.body)) as { model: string }).model, "chat");
  const whole = JSON.parse(lastText()) as { model: string; choices: { message: { content: string } }[] };
  assert.deepEqual([whole.model, whole.choices[0]?.message.content], ["chat", "x"]);
  assert.equal(await ask({}, { model: "chat", stream: true }), 200);
  const models = [...lastText().matchAll(/"model":"(.*?)"/g)].map(([, model]) => model);
  assert.deepEqual(models, ["chat", "chat"]);
  assert.ok(lastText().endsWith("data: [DONE]\n\n"));
  assert.equal(await ask({}, { model: "base" }), 200);
  assert.equal((JSON.parse(lastText()) as { model: string }).model, "base", "of its own name it is left alone");
});

const BY = { by: "test", dryRun: false, ifVersion: undefined };
