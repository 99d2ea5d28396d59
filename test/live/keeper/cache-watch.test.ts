import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import { BREAKER_DEFAULTS } from "#core/endpoint/breaker.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import { CacheWatch } from "#live/keeper/cache-watch.ts";
import type { FaultEvent } from "#live/log/fault-log.ts";

import { LOWEST_ID_FIRST, type Rig, ask, startRig } from "../gateway/rig.ts";
import { jsonReply } from "../gateway/stub-engine.ts";

const PROMPT_TOKENS = 200;
/** The last block of a prompt is always computed. */
const HIT = 196;

interface Watching {
  readonly rig: Rig;
  readonly events: FaultEvent[];
  /** Asks for a prompt of its own, of which the engine reports so many cached tokens; what was expected. */
  readonly ask: (prompt: string, cachedTokens: number) => Promise<number>;
}

async function watching(t: TestContext): Promise<Watching> {
  let cached = 0;
  const rig = await startRig([
    (_request, socket) => {
      const prompt_tokens_details = { cached_tokens: cached };
      const usage = { prompt_tokens: PROMPT_TOKENS, completion_tokens: 1, prompt_tokens_details };
      socket.write(jsonReply(200, { choices: [{ index: 0, text: "x", finish_reason: "stop" }], usage }));
    },
  ]);
  t.after(() => rig.close());
  const events: FaultEvent[] = [];
  rig.intake.listen(
    new CacheWatch({ intake: rig.intake, directory: rig.directory, report: (event) => events.push(event) }),
  );
  const asks = async (prompt: string, cachedTokens: number): Promise<number> => {
    cached = cachedTokens;
    const words = Array.from({ length: PROMPT_TOKENS }, (_, i) => `${prompt}${i}`).join(" ");
    const { status } = await ask(rig.url, { model: "tiny", prompt: words }, { path: "/v1/completions" });
    assert.equal(status, 200);
    const last = rig.decisions.at(-1)!;
    return last.kind === "routed" ? last.hitTokens : -1;
  };
  return { rig, events, ask: asks };
}

test("two answers without what was expected empty what is known of a cache, as an input with which all replays", async (t) => {
  const { rig, events, ask } = await watching(t);
  const prompts = ["a", "b", "c", "d"];
  for (const prompt of prompts) assert.equal(await ask(prompt, 0), 0);
  for (const prompt of prompts) assert.equal(await ask(prompt, HIT), HIT);
  assert.equal(rig.inputs.filter(({ kind }) => kind === "blocks-cleared").length, 0);
  // Somebody resets the engine's cache.
  assert.deepEqual([await ask("a", 0), await ask("b", 0)], [HIT, HIT]);
  assert.deepEqual([await ask("c", 0), await ask("d", 0)], [0, 0]);
  assert.equal(rig.inputs.filter(({ kind }) => kind === "blocks-cleared").length, 1);
  assert.deepEqual(
    events.map(({ kind, endpoint }) => [kind, endpoint]),
    [["cache-emptied", "a"]],
  );
  const again = new Router({
    seed: 1,
    profiles: { default: LOWEST_ID_FIRST },
    defaultProfile: "default",
    index: new ApproximateIndex(),
    blockTokens: 4,
    staleAfterMicros: 1_000_000,
    breaker: BREAKER_DEFAULTS,
  });
  const replayed = rig.inputs.flatMap((input) => again.accept(input) ?? []);
  assert.deepEqual(replayed, rig.decisions);
});

test("an engine of which no hit ever comes is stated once in the log and at its endpoint, until one comes", async (t) => {
  const { rig, events, ask } = await watching(t);
  const never = () => events.filter(({ kind }) => kind === "hits-never-come").length;
  const detail = () => rig.directory.get("a")!.detail;
  for (let i = 0; i < 60; i++) {
    await ask("a", 0);
    if (never() === 0) assert.equal(detail(), "");
  }
  assert.equal(never(), 1);
  assert.match(detail(), /is prefix caching off/);
  await ask("a", 0);
  await ask("a", HIT);
  assert.equal(detail(), "");
});
