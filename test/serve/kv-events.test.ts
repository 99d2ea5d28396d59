import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { isDeepStrictEqual } from "node:util";
import type { Routed } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import { type Emulator, startEmulator } from "#emulator/server.ts";
import { type EngineConfig, engineDefaults } from "#engine/config.ts";
import { type StartedGateway, startedGateway } from "./started-gateway.ts";
import { servePlan } from "#cli/serve/serve-options.ts";
import { replayCommand } from "#cli/replay.ts";
import { inProcess } from "../cli/in-process.ts";
import { until } from "../live/discovery/fleet-under-test.ts";

const BLOCK_TOKENS = 16;
const STEP_TIME = { kind: "coefficients", baseMicros: 1_000, perPrefillTokenMicros: 1, perDecodeMicros: 10 } as const;
/** Room for 40 blocks. */
const ENGINE = engineDefaults({ blockTokens: BLOCK_TOKENS, kvBlocks: 41, modelTokensMax: 512, stepTime: STEP_TIME });

interface Rig {
  readonly engine: Emulator;
  readonly stack: StartedGateway;
  /** Ends the gateway, so that its trace is complete. */
  readonly close: () => Promise<void>;
  readonly inputs: Input[];
  readonly directory: string;
  /** Sends token ids to the gateway; what was expected to be cached, from where, and what was. */
  readonly ask: (prompt: readonly number[]) => Promise<[hit: number, source: string, cached: number]>;
  /** Sends token ids to the engine, behind the gateway's back. */
  readonly askEngine: (prompt: readonly number[]) => Promise<void>;
  readonly faults: (faults: object) => Promise<void>;
  /** The gateway knows of everything that the engine has published. */
  readonly settled: () => Promise<void>;
}

/** Long for a machine that does much else; where a test has a replay refused, it waits for this. */
const REPLAY_MILLIS = 1_000;

async function rig(t: TestContext, kept = 1_000, tier?: EngineConfig["tier"]): Promise<Rig> {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-kv-events-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const kvEvents = { port: 0, replayPort: 0, topic: "kv@a", bufferSteps: kept };
  const common = { host: "127.0.0.1", port: 0, model: "tiny", timeScale: 100, seed: 1 };
  const engine = await startEmulator({ ...common, engine: { ...ENGINE, tier }, kvEvents });
  const set = [
    `record.directory=${directory}`,
    "kvEvents.mode=on",
    `kvEvents.replayMillis=${REPLAY_MILLIS}`,
    "listen.drainNoticeMillis=0",
  ];
  const stack = await startedGateway(servePlan({ set }, {}));
  const { close } = stack;
  t.after(async () => {
    await close();
    await engine.close();
  });
  const inputs: Input[] = [];
  let source = "";
  stack.intake.listen({
    accepted: (input, decision) => {
      inputs.push(input);
      if (decision?.kind === "routed") source = decision.prefixSource;
    },
  });
  const reported = (): number => inputs.filter(({ kind }) => kind.startsWith("blocks-")).length;
  let settledAt = reported();
  const { url } = await stack.gateway.listen("127.0.0.1", 0);
  const post = async (to: string, body: object): Promise<Response> => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(to, { method: "POST", headers, body: JSON.stringify(body) });
    assert.equal(answer.status, 200);
    return answer;
  };
  const asked = (prompt: readonly number[]) => ({ model: "tiny", prompt, max_tokens: 1 });
  const target = { id: "a", url: engine.url, labels: {}, cordoned: false };
  const unknown = {
    dataParallelRank: undefined,
    apiKey: undefined,
    kvCapacityTokens: undefined,
    concurrencyMax: undefined,
  };
  stack.keeper.setTargets("static", [{ ...target, ...unknown }]);
  await until("its events are followed", () => inputs.some(({ kind }) => kind === "kv-events-alive"));
  return {
    engine,
    stack,
    close,
    inputs,
    directory,
    ask: async (prompt) => {
      const answer = await post(`${url}/v1/completions`, asked(prompt));
      const { usage } = (await answer.json()) as { usage: { prompt_tokens_details: { cached_tokens: number } } };
      return [Number(answer.headers.get("x-gnomon-hit-tokens")), source, usage.prompt_tokens_details.cached_tokens];
    },
    askEngine: async (prompt) => void (await (await post(`${engine.url}/v1/completions`, asked(prompt))).text()),
    faults: async (faults) => void (await post(`${engine.url}/emulator/kv-events`, faults)),
    settled: async () => {
      await until("its events come", () => reported() > settledAt);
      for (let quiet = 0; quiet < QUIET_TURNS; quiet++) {
        const before = reported();
        await new Promise((resolve) => setTimeout(resolve, 3));
        if (reported() !== before) quiet = 0;
      }
      settledAt = reported();
    },
  };
}

/** Turns of the event loop without an event from the engine, after which none is on its way. */
const QUIET_TURNS = 10;

/**
 * The gateway comes to expect all whole blocks of a prompt that the engine has: not at once, on a machine that does
 * much else.
 */
async function comesToKnow(ask: Rig["ask"], prompt: readonly number[]): Promise<void> {
  const tokens = prompt.length - 1;
  const all = [tokens, "precise", tokens] as const;
  for (let tries = 0; tries < TRIES; tries++) {
    const got = await ask(prompt);
    if (isDeepStrictEqual(got, all)) return;
    assert.equal(got[2], tokens, "the engine has it");
    await new Promise((resolve) => setTimeout(resolve, 3));
  }
  assert.deepEqual(await ask(prompt), all);
}

const TRIES = 500;

/** A prompt of so many blocks and a token that begins like all of its family. */
function prompt(family: number, blocks: number): number[] {
  return Array.from({ length: blocks * BLOCK_TOKENS + 1 }, (_, i) => 1_000 * family + i);
}

test("what another client stores and overwrites in an engine is expected to the block, and a trace of it replays alike", async (t) => {
  const { ask, askEngine, settled, stack, directory, close } = await rig(t);
  await askEngine(prompt(1, 10));
  await settled();
  assert.deepEqual(await ask(prompt(1, 10)), [160, "precise", 160]);
  // 40 blocks: the other client's prompt overwrites all of the first but what is still free.
  await askEngine(prompt(2, 25));
  await askEngine(prompt(3, 10));
  await settled();
  const [expected, source, cached] = await ask(prompt(1, 10));
  assert.deepEqual([expected, source], [cached, "precise"]);
  assert.ok(cached < 160);
  assert.deepEqual(await ask(prompt(3, 10)), [160, "precise", 160]);
  const row = stack.intake.router.endpointRows(0)[0]!;
  assert.deepEqual(row.knowledge, { source: "precise", reason: "" });
  await close();
  const { code, out } = await inProcess(t, [replayCommand()], ["replay", directory]);
  assert.equal(code, 0, out);
  assert.match(out, /3 decisions/);
});

test("a reset that is reported late does no harm to what was computed since", async (t) => {
  const { ask, settled, engine, inputs } = await rig(t);
  await ask(prompt(1, 10));
  await settled();
  await fetch(`${engine.url}/reset_prefix_cache`, { method: "POST" });
  // Nobody knows of the reset before the next step that has events.
  const [expected, , cached] = await ask(prompt(1, 10));
  assert.deepEqual([expected, cached], [160, 0]);
  await settled();
  assert.ok(inputs.some((input) => input.kind === "blocks-cleared" && input.inOrder === true));
  assert.deepEqual(await ask(prompt(1, 10)), [160, "precise", 160]);
});

test("lost messages are brought back by a replay; where it is refused, nothing of before is expected any more", async (t) => {
  const { ask, askEngine, faults, settled, inputs } = await rig(t);
  await askEngine(prompt(1, 10));
  await faults({ dropShare: 1 });
  await askEngine(prompt(2, 10));
  await faults({ dropShare: 0 });
  await askEngine(prompt(3, 5));
  await settled();
  await comesToKnow(ask, prompt(2, 10));
  await faults({ dropShare: 1, replayRefused: true });
  await askEngine(prompt(4, 20));
  await faults({ dropShare: 0 });
  await askEngine(prompt(5, 4));
  await until("the gap is known", () => inputs.some(({ kind }) => kind === "kv-events-missed"));
  await settled();
  for (const family of [1, 2, 3, 4]) {
    const [expected, , cached] = await ask(prompt(family, 5));
    assert.ok(expected <= cached, `family ${family}: ${expected} expected, ${cached} cached`);
  }
  // What was computed since is known again.
  await comesToKnow(ask, prompt(5, 4));
});

test("blocks that an engine keeps in its host's memory are expected, and count for less", async (t) => {
  const tier = {
    cpuBlocks: 100,
    offloadThreshold: 0,
    transferBaseMicros: 30,
    blockBytes: 1_000_000,
    bytesPerSecond: 1e10,
    thrashWindowMicros: 5_000,
  };
  const { ask, askEngine, settled, stack, inputs, directory, close } = await rig(t, 1_000, tier);
  const decisions: Routed[] = [];
  stack.intake.listen({
    accepted: (_, decision) => {
      if (decision?.kind === "routed") decisions.push(decision);
    },
  });
  await ask(prompt(1, 10));
  // They overwrite the first one on the device.
  await askEngine(prompt(2, 25));
  await askEngine(prompt(3, 25));
  await settled();
  assert.deepEqual(await ask(prompt(1, 10)), [160, "precise", 160]);
  const last = decisions.at(-1)!;
  assert.ok(last.hitTokens < 160 && last.heldTokens === 160, `${last.hitTokens} of ${last.heldTokens}`);
  assert.ok(inputs.some((input) => input.kind === "blocks-stored" && input.medium === "host"));
  await close();
  const { code, out } = await inProcess(t, [replayCommand()], ["replay", directory]);
  assert.equal(code, 0, out);
});
