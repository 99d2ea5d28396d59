import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import { Intake } from "#live/base/intake.ts";
import { GrpcCall } from "#picker/grpc/call.ts";
import { GRPC_STATUS } from "#picker/grpc/message-frames.ts";
import { warmUpPicker } from "#picker/warm-up-picker.ts";
import { IDENTITY, LEARNT, WORD_TOKENIZER } from "../live/gateway/rig.ts";

function newRouter(): Router {
  return new Router({
    seed: 1,
    profiles: { default: loadProfile("gnomon").spec },
    defaultProfile: "default",
    index: new ApproximateIndex(),
    blockTokens: 4,
    staleAfterMicros: 1_000_000,
  });
}

for (const tls of [false, true]) {
  test(`the picker's warm-up asks as a proxy does, ${tls ? "over TLS" : "in plain text"}, and each request gets an engine and ends well`, async () => {
    const router = newRouter();
    const intake = new Intake(router);
    const outcomes = new Map<string, number>();
    const endpoints = new Set<string>();
    let prompts = 0;
    intake.listen({
      accepted(input, decision) {
        if (input.kind === "request-arrived" && input.request.promptTokens > 0) prompts++;
        if (decision?.kind === "routed") endpoints.add(decision.endpoint);
        if (input.kind === "request-finished") outcomes.set(input.outcome, (outcomes.get(input.outcome) ?? 0) + 1);
      },
    });
    const learntBefore = LEARNT.length;
    const options = { intake, identity: IDENTITY, tokenizer: () => WORD_TOKENIZER, tls };
    assert.equal(await warmUpPicker({ ...options, requests: 120, budgetMillis: 120_000 }), 120);
    assert.deepEqual([...outcomes], [["ok", 120]]);
    assert.equal(prompts, 120, "each has a prompt, as its path is one of inference");
    assert.ok(endpoints.size > 1, "there is a choice");
    assert.equal(router.openCharges, 0);
    assert.equal(LEARNT.length, learntBefore, "the tokenizer learns no counts of a made-up engine");
  });
}

test("what is done while requests are under way meets placed ones of every kind, once", async () => {
  const router = newRouter();
  const charges: number[] = [];
  const options = { intake: new Intake(router), identity: IDENTITY, tokenizer: () => WORD_TOKENIZER };
  const whileUnderWay = (): void => void charges.push(router.openCharges);
  assert.equal(await warmUpPicker({ ...options, requests: 20, budgetMillis: 120_000, whileUnderWay }), 20);
  assert.deepEqual(charges, [16]);
  assert.equal(router.openCharges, 0);
});

test("a warm-up whose questions are not answered is a shorter one, and no reason not to start", async (t) => {
  t.mock.method(GrpcCall.prototype, "start", function refuse(this: GrpcCall) {
    this.end(GRPC_STATUS.unavailable);
  });
  const options = { intake: new Intake(newRouter()), identity: IDENTITY, tokenizer: () => WORD_TOKENIZER };
  let calls = 0;
  const whileUnderWay = (): void => void calls++;
  assert.equal(await warmUpPicker({ ...options, requests: 200, budgetMillis: 120_000, whileUnderWay }), 0);
  assert.equal(calls, 1);
});
