import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { replayCommand } from "#cli/replay.ts";
import { servePlan } from "#cli/serve/serve-options.ts";
import type { Input } from "#core/input/input.ts";
import { startEmulator } from "#emulator/server.ts";
import { engineDefaults } from "#engine/config.ts";
import { startedGateway } from "./started-gateway.ts";
import { inProcess } from "../cli/in-process.ts";
import { until } from "../live/discovery/fleet-under-test.ts";

const STEP_TIME = { kind: "coefficients", baseMicros: 1_000, perPrefillTokenMicros: 1, perDecodeMicros: 10 } as const;
const ENGINE = engineDefaults({ blockTokens: 16, kvBlocks: 101, modelTokensMax: 512, stepTime: STEP_TIME });

/** Two emulated vLLM servers with sleep mode behind a gateway that records; scraped every 10 ms. */
async function rig(t: TestContext) {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-sleep-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const common = {
    host: "127.0.0.1",
    port: 0,
    model: "tiny",
    timeScale: 100,
    seed: 1,
    engine: ENGINE,
    sleepMode: true,
  };
  const engines = [await startEmulator(common), await startEmulator(common)] as const;
  const set = [`record.directory=${directory}`, "scrape.intervalMillis=10", "listen.drainNoticeMillis=0"];
  const stack = await startedGateway(servePlan({ set }, {}));
  const { close } = stack;
  t.after(async () => {
    await close();
    for (const engine of engines) await engine.close();
  });
  const inputs: Input[] = [];
  stack.intake.listen({ accepted: (input) => inputs.push(input) });
  const { url } = await stack.gateway.listen("127.0.0.1", 0);
  const rest = { labels: {}, cordoned: false, dataParallelRank: undefined, apiKey: undefined };
  const unknown = { kvCapacityTokens: undefined, concurrencyMax: undefined };
  const targets = engines.map((engine, i) => ({ id: "ab"[i]!, url: engine.url, ...rest, ...unknown }));
  stack.keeper.setTargets("static", targets);
  const joined = () => inputs.filter(({ kind }) => kind === "endpoint-joined").length === 2;
  await until("both are there", joined);
  return {
    engines,
    directory,
    close,
    url,
    ask: () => {
      const body = JSON.stringify({
        model: "tiny",
        prompt: Array.from({ length: 70 }, (_, i) => 300 + i),
        max_tokens: 1,
      });
      return fetch(`${url}/v1/completions`, { method: "POST", headers: { "content-type": "application/json" }, body });
    },
    /** Puts an engine to sleep or wakes it, and waits until the gateway knows. */
    become: async (i: 0 | 1, path: "/sleep?level=1" | "/sleep?level=0" | "/wake_up") => {
      const before = inputs.length;
      assert.equal((await fetch(engines[i].url + path, { method: "POST" })).status, 200);
      const known = ({ kind }: Input): boolean => kind === "endpoint-slept";
      await until(path, () => inputs.slice(before).some(known));
      return inputs.slice(before).find(known) as Extract<Input, { kind: "endpoint-slept" }>;
    },
  };
}

test("engines that sleep get no requests; where all do, clients are asked to come back; and a trace of it replays alike", async (t) => {
  const { ask, become, close, directory, url } = await rig(t);
  const servedBy = async (): Promise<string | null> => {
    const answer = await ask();
    assert.equal(answer.status, 200);
    const { usage } = (await answer.json()) as { usage: { prompt_tokens: number } };
    assert.equal(usage.prompt_tokens, 70);
    return answer.headers.get("x-gnomon-endpoint");
  };
  const first = await servedBy();
  assert.equal(await servedBy(), first, "its prompt is cached there");
  const [one, other] = first === "a" ? ([0, 1] as const) : ([1, 0] as const);
  const { asleep, emptied } = await become(one, "/sleep?level=1");
  assert.deepEqual([asleep, emptied], [true, true]);
  for (let i = 0; i < 3; i++) assert.notEqual(await servedBy(), first);
  assert.deepEqual(await become(other, "/sleep?level=0").then((input) => input.emptied), undefined);
  const refused = await ask();
  assert.deepEqual([refused.status, refused.headers.get("retry-after")], [503, "5"]);
  assert.equal(refused.headers.get("x-gnomon-reason"), "asleep");
  const { error } = (await refused.json()) as { error: { message: string } };
  assert.equal(error.message, "All engines that serve this model are asleep; try again once one of them is awake.");
  const page = await (await fetch(`${url}/metrics`)).text();
  assert.deepEqual(
    page.match(/^gnomon_endpoint_asleep\{.*\} .*$/gm)?.map((line) => line.at(-1)),
    ["1", "1"],
  );
  assert.equal((await become(one, "/wake_up")).asleep, false);
  const back = await ask();
  assert.deepEqual([back.status, back.headers.get("x-gnomon-endpoint")], [200, first]);
  assert.equal(back.headers.get("x-gnomon-hit-tokens"), "0", "what it had is known to be gone");
  await close();
  const { code, out } = await inProcess(t, [replayCommand()], ["replay", directory]);
  assert.equal(code, 0, out);
});

test("a request that came as its engine fell asleep goes on elsewhere before anybody takes it for hung", async (t) => {
  const { ask, become, engines } = await rig(t);
  const first = (await ask()).headers.get("x-gnomon-endpoint");
  const one = first === "a" ? 0 : 1;
  // Paused behind the gateway's back: its page shows that at the next scrape.
  await fetch(`${engines[one].url}/sleep?level=0`, { method: "POST" });
  const answers = await Promise.all(Array.from({ length: 4 }, () => ask()));
  for (const answer of answers) {
    assert.equal(answer.status, 200);
    assert.notEqual(answer.headers.get("x-gnomon-endpoint"), first);
  }
  await become(one, "/wake_up");
});
