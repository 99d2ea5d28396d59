import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import { RouterTap } from "#live/base/router-tap.ts";
import { warmUpPicker } from "#picker/warm-up-picker.ts";
import { IDENTITY, LEARNT, WORD_TOKENIZER } from "../live/gateway/rig.ts";

test("the picker's warm-up asks as a proxy does, and each request gets an engine and ends well", async () => {
  const router = new Router({
    seed: 1,
    profiles: { default: loadProfile("gnomon").spec },
    defaultProfile: "default",
    index: new ApproximateIndex(),
    blockTokens: 4,
    staleAfterMicros: 1_000_000,
  });
  const tap = new RouterTap(router);
  const outcomes = new Map<string, number>();
  let prompts = 0;
  tap.listen({
    accepted(input) {
      if (input.kind === "request-arrived" && input.request.promptTokens > 0) prompts++;
      if (input.kind === "request-finished") outcomes.set(input.outcome, (outcomes.get(input.outcome) ?? 0) + 1);
    },
  });
  const learntBefore = LEARNT.length;
  const options = { tap, identity: IDENTITY, tokenizer: () => WORD_TOKENIZER };
  assert.equal(await warmUpPicker({ ...options, requests: 120, budgetMillis: 120_000 }), 120);
  assert.deepEqual([...outcomes], [["ok", 120]]);
  assert.equal(prompts, 120, "each has a prompt, as its path is one of inference");
  assert.equal(router.openCharges, 0);
  assert.equal(LEARNT.length, learntBefore, "the tokenizer learns no counts of a made-up engine");
});
