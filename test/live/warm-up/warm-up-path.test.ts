import assert from "node:assert/strict";
import { test } from "node:test";
import { Pool } from "undici";

import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { loadProfile } from "#config/profile-file.ts";
import { Router } from "#core/router.ts";
import { EndpointDirectory } from "#live/endpoints/endpoint-directory.ts";
import { Member } from "#live/keeper/member.ts";
import { staticTargets } from "#live/discovery/static.ts";
import { Intake } from "#live/base/intake.ts";
import type { Tokenizer } from "#live/tokenizer/text/tokenizer.ts";
import { joinMadeUp } from "#live/warm-up/made-up-endpoint.ts";
import { warmUpPath } from "#live/warm-up/warm-up-path.ts";

import { type Rig, IDENTITY, LEARNT, startRig, WORD_TOKENIZER } from "../gateway/rig.ts";
import { sameShape } from "../../same-shape.ts";

const DEFAULT_PROFILE = loadProfile("gnomon").spec;

function newRouter(): Router {
  return new Router({
    seed: 1,
    profiles: { default: DEFAULT_PROFILE },
    defaultProfile: "default",
    index: new ApproximateIndex(),
    blockTokens: 4,
    staleAfterMicros: 1_000_000,
  });
}

test("the warm-up goes from socket to socket and leaves nothing behind", async () => {
  const before = process.getActiveResourcesInfo().length;
  const router = newRouter();
  const intake = new Intake(router);
  const outcomes = new Map<string, number>();
  intake.listen({
    accepted(input) {
      if (input.kind === "request-finished") outcomes.set(input.outcome, (outcomes.get(input.outcome) ?? 0) + 1);
    },
  });
  const options = { intake, identity: IDENTITY, tokenizer: () => WORD_TOKENIZER };
  const answered = await warmUpPath({ ...options, requests: 200, budgetMillis: 120_000 });
  assert.equal(answered, 200);
  assert.deepEqual(LEARNT, [], "the tokenizer learns no counts of a made-up engine");
  assert.deepEqual([...outcomes], [["ok", 200]]);
  assert.equal(router.openCharges, 0);
  for (let i = 0; i < 100 && process.getActiveResourcesInfo().length > before; i++) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.ok(process.getActiveResourcesInfo().length <= before);
});

test("what is done while requests are under way meets one that streams and one that does not, once", async () => {
  const router = newRouter();
  const charges: number[] = [];
  const options = { intake: new Intake(router), identity: IDENTITY, tokenizer: () => WORD_TOKENIZER };
  const whileUnderWay = (): void => void charges.push(router.openCharges);
  assert.equal(await warmUpPath({ ...options, requests: 20, budgetMillis: 120_000, whileUnderWay }), 20);
  assert.deepEqual(charges, [2]);
  assert.equal(router.openCharges, 0);
});

test("a warm-up whose connections break is a shorter one, and no reason not to start", async (t) => {
  t.mock.method(Pool.prototype, "request", async () => Promise.reject(new Error("read ECONNRESET")));
  const router = newRouter();
  const options = { intake: new Intake(router), identity: IDENTITY, tokenizer: () => WORD_TOKENIZER };
  let calls = 0;
  const whileUnderWay = (): void => void calls++;
  assert.equal(await warmUpPath({ ...options, requests: 200, budgetMillis: 120_000, whileUnderWay }), 0);
  assert.equal(calls, 1);
});

test("some of its chats are read behind messages that are known, as long ones of clients are", async () => {
  let readOn = 0;
  const tokenizer: Tokenizer = {
    ...WORD_TOKENIZER,
    encode(prompt, scope) {
      if (prompt.kind === "chat" && prompt.beginning !== undefined) readOn++;
      return WORD_TOKENIZER.encode(prompt, scope);
    },
  };
  const options = { intake: new Intake(newRouter()), identity: IDENTITY, tokenizer: () => tokenizer };
  await warmUpPath({ ...options, requests: 160, budgetMillis: 120_000 });
  assert.ok(readOn >= 4, `${readOn} of 160`);
});

test("what requests share, and endpoints, have one shape in each gateway, so that optimized code serves the next one", async () => {
  const rigs: Rig[] = [];
  for (const options of [{}, { timeoutHeaders: ["x-timeout"], stages: { clients: { continueStreams: true } } }]) {
    rigs.push(await startRig([], options));
  }
  const [one, other] = rigs.map(({ gateway }) => gateway.shared);
  for (const rig of rigs) await rig.close();
  assert.ok(sameShape(one!, other!));

  const intake = new Intake(newRouter());
  const joined: object[] = [];
  intake.listen({
    accepted(input) {
      if (input.kind === "endpoint-joined") joined.push(input.endpoint);
    },
  });
  const directory = new EndpointDirectory();
  joinMadeUp("http://127.0.0.1:9", 1, intake, directory);
  const [target] = staticTargets([{ url: "http://127.0.0.1:10", labels: { zone: "a" } }]);
  new Member(target!, intake, directory).join(2, [{ id: "m", object: "model" }], undefined);
  assert.ok(sameShape(joined[0]!, joined[1]!));
});
