import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Input } from "#core/input/input.ts";
import { startedGateway } from "./started-gateway.ts";
import { servePlan } from "#cli/serve/serve-options.ts";
import { replayCommand } from "#cli/replay.ts";
import { inProcess } from "../cli/in-process.ts";
import { until } from "../live/discovery/fleet-under-test.ts";
import { StubEngine, answer, engineText, modelsText } from "../live/discovery/stub-engine.ts";

const PROMPT = Array.from({ length: 100 }, (_, i) => i);

test("prompts are cut into the engine's blocks from its first scrape on, and a trace of it replays alike", async (t) => {
  const engine = await StubEngine.start();
  const completion = { choices: [{ index: 0, text: "x", finish_reason: "stop" }], usage: { prompt_tokens: 100 } };
  engine.models = (request, response) => {
    if (request.url === "/v1/models") return answer(200, modelsText("tiny"))(request, response);
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(completion));
  };
  const directory = mkdtempSync(join(tmpdir(), "gnomon-block-size-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const set = [`record.directory=${directory}`, "scrape.intervalMillis=20", "listen.drainNoticeMillis=0"];
  const stack = await startedGateway(servePlan({ set }, {}));
  const inputs: Input[] = [];
  stack.intake.listen({ accepted: (input) => void inputs.push(input) });
  const { url } = await stack.gateway.listen("127.0.0.1", 0);
  const ask = async () => {
    const body = JSON.stringify({ model: "tiny", prompt: PROMPT });
    const headers = { "content-type": "application/json" };
    const got = await fetch(`${url}/v1/completions`, { method: "POST", headers, body });
    assert.equal(got.status, 200, await got.text());
    const arrival = inputs.findLast((input) => input.kind === "request-arrived");
    assert.ok(arrival?.kind === "request-arrived");
    return { hit: Number(got.headers.get("x-gnomon-hit-tokens")), blocks: arrival.request.blocks };
  };
  const sized = (blockTokens: number) =>
    answer(200, engineText({}).replace('block_size="16"', `block_size="${blockTokens}"`));
  engine.metrics = sized(32);
  const target = {
    id: "a",
    url: engine.url,
    dataParallelRank: undefined,
    apiKey: undefined,
    labels: {},
    cordoned: false,
    kvCapacityTokens: undefined,
    concurrencyMax: undefined,
  };
  stack.keeper.setTargets("static", [target]);
  await until("the endpoint is there", () => inputs.some(({ kind }) => kind === "endpoint-joined"));
  const kinds = inputs.map(({ kind }) => kind);
  assert.ok(kinds.indexOf("block-size-changed") < kinds.indexOf("endpoint-joined"), kinds.join(" "));
  const first = await ask();
  assert.deepEqual([first.blocks.blockTokens, first.blocks.length, first.hit], [32, 3, 0]);
  assert.equal((await ask()).hit, 96);
  engine.metrics = sized(64);
  const changed = (): number => inputs.filter(({ kind }) => kind === "block-size-changed").length;
  await until("the size changed", () => changed() === 2);
  const afresh = await ask();
  assert.deepEqual([afresh.blocks.blockTokens, afresh.blocks.length, afresh.hit], [64, 1, 0]);
  assert.equal((await ask()).hit, 64);
  await stack.close();
  await engine.kill();
  const times = inputs.map(({ at }) => at);
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
    "in order of time",
  );
  const { code, out } = await inProcess(t, [replayCommand()], ["replay", directory]);
  assert.equal(code, 0, out);
  assert.match(out, /4 decisions/);
});
