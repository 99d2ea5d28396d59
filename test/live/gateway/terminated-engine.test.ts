import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { type Emulator, startEmulator } from "#emulator/server.ts";
import { engineDefaults } from "#engine/config.ts";

import { type Got, type Rig, ask, startRig } from "./rig.ts";

/** So many microseconds a token. */
const engineOf = (baseMicros: number) =>
  engineDefaults({
    blockTokens: 16,
    kvBlocks: 2_048,
    stepTime: { kind: "coefficients", baseMicros, perPrefillTokenMicros: 0, perDecodeMicros: 0 },
  });
/** Long enough to be interrupted, however busy the machine is. */
const SLOW = engineOf(100_000);
const FAST = engineOf(1_000);
const TOKENS = 60;

const CHAT = [{ role: "user", content: "Of the old harbor and the ships in it." }];
const BODIES: Readonly<Record<string, object>> = {
  "/v1/chat/completions": { messages: CHAT, max_tokens: TOKENS, ignore_eos: true, temperature: 0 },
  "/v1/completions": { prompt: "Of the old harbor", max_tokens: TOKENS, ignore_eos: true, temperature: 0 },
  "/v1/messages": { messages: CHAT, max_tokens: TOKENS, ignore_eos: true, temperature: 0 },
  "/v1/responses": { input: CHAT, max_output_tokens: TOKENS, ignore_eos: true, temperature: 0 },
};

/** The output tokens that an answer counts, where it is whole. */
const COUNTED: Readonly<Record<string, RegExp>> = {
  "/v1/chat/completions": /"completion_tokens":(\d+)/,
  "/v1/completions": /"completion_tokens":(\d+)/,
  "/v1/messages": /"output_tokens":(\d+)[^]*$/,
  "/v1/responses": /"output_tokens":(\d+)[^]*$/,
};

interface Fleet {
  readonly rig: Rig;
  readonly first: Emulator;
  close(): Promise<void>;
}

async function startFleet(): Promise<Fleet> {
  const options = { port: 0, host: "127.0.0.1", seed: 1, model: "tiny", timeScale: 1 };
  const [first, second] = await Promise.all([
    startEmulator({ ...options, engine: SLOW }),
    startEmulator({ ...options, engine: FAST }),
  ]);
  const rig = await startRig([], { urls: [first.url, second.url], stages: { clients: { continueStreams: true } } });
  const close = async (): Promise<void> => {
    await rig.close();
    await Promise.all([first.close(), second.close()]);
  };
  return { rig, first, close };
}

/** Asks the first engine of two, which is terminated in the midst of its answer. */
async function interrupted(fleet: Fleet, path: string, stream: boolean): Promise<Got> {
  const body = { model: "tiny", ...BODIES[path], ...(stream && { stream, stream_options: { include_usage: true } }) };
  const answer = ask(fleet.rig.url, body, { path });
  while (fleet.first.engine.gauges.generationTokens < 3) await new Promise((resolve) => setTimeout(resolve, 5));
  await fleet.first.signalTerminate();
  return answer;
}

describe("an engine that is terminated, as every rolling restart does", () => {
  for (const path of Object.keys(BODIES)) {
    test(`${path}: its answer in one piece comes whole from another engine`, async () => {
      const fleet = await startFleet();
      try {
        const { status, body } = await interrupted(fleet, path, false);
        assert.equal(status, 200, body);
        assert.equal(Number(COUNTED[path]!.exec(body)?.[1]), TOKENS, body);
        assert.match(body, /"(?:finish_reason":"length|stop_reason":"max_tokens|status":"incomplete)"/);
        assert.deepEqual(fleet.rig.retried, ["draining"]);
      } finally {
        await fleet.close();
      }
    });

    test(`${path}: its stream goes on at another engine, and is whole`, async () => {
      const fleet = await startFleet();
      try {
        const { body } = await interrupted(fleet, path, true);
        assert.equal(Number(COUNTED[path]!.exec(body.slice(body.lastIndexOf('"usage"')))?.[1]), TOKENS, body);
        assert.match(body, /(?:\[DONE\]|"type":"(?:message_stop|response.completed)"\})\n\n$/);
        assert.ok(!body.includes("error"), body);
        assert.deepEqual(fleet.rig.gateway.counters.continuations, { draining: 1 });
      } finally {
        await fleet.close();
      }
    });
  }
});
