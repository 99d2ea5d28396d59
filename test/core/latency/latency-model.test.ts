import assert from "node:assert/strict";
import { test } from "node:test";
import { attentionPairs, LatencyModel, ModelSet, type Situation } from "#core/latency/latency-model.ts";
import { type Random, randomFor } from "#core/base/random.ts";

const PRIORS = {
  stepMicros: 8_000,
  prefillTokenMicros: 40,
  sequenceMicros: 20,
  contextTokenMicros: 0.08,
  stepTokensMax: 8_192,
};

/** Nobody else is there, and there is room. */
const ALONE: Situation = {
  requests: 0,
  contextTokens: 0,
  queuedTokens: 0,
  computingMicros: 0,
  sequences: 1,
  newTokens: 1_000,
  attentionPairs: 0,
  prefillPerMicro: 0,
  prefillPerStep: Infinity,
  turnover: 0,
  ageMicros: 0,
  answerTokens: 200,
};

/** An engine of the model's own form, `speed` times as slow. */
const stepMicros = (requests: number, context: number, speed: number) =>
  speed * (5_000 + 60 * requests + 0.2 * context);

function ttftMicros({ requests, contextTokens, queuedTokens, newTokens }: Situation, speed: number): number {
  const tokens = queuedTokens + newTokens;
  const steps = Math.ceil(tokens / PRIORS.stepTokensMax) + (requests > 0 ? 0.5 : 0);
  return steps * stepMicros(requests, contextTokens, speed) + speed * 25 * tokens;
}

function taught(speeds: Readonly<Record<string, number>>, samples: number): LatencyModel {
  const random = randomFor(5, 6);
  const model = new LatencyModel(PRIORS);
  for (let i = 0; i < samples; i++) {
    for (const [endpoint, speed] of Object.entries(speeds)) {
      const situation = drawn(random);
      model.learnTtft(endpoint, i * 100_000, situation, ttftMicros(situation, speed));
      const { requests, contextTokens } = situation;
      const micros = stepMicros(requests, contextTokens, speed);
      model.learnTpot(endpoint, i * 100_000, { requests, contextTokens, prefillPerStep: 0 }, micros);
    }
  }
  return model;
}

function drawn(random: Random): Situation {
  const requests = Math.floor(random.next() * 40);
  return {
    ...ALONE,
    requests,
    contextTokens: requests * Math.floor(random.next() * 4_000),
    queuedTokens: Math.floor(random.next() * 8_000),
    newTokens: 1 + Math.floor(random.next() * 6_000),
  };
}

test("predicts engines of its own form within 5 % once it has seen some hundred answers, each at its own speed", () => {
  const speeds = { fast: 1, slow: 2.5 };
  const model = taught(speeds, 600);
  const random = randomFor(7, 8);
  for (const [endpoint, speed] of Object.entries(speeds)) {
    for (let i = 0; i < 50; i++) {
      const situation = drawn(random);
      const { requests, contextTokens } = situation;
      const ttft = model.ttftMicros(endpoint, situation) / ttftMicros(situation, speed);
      const tpot =
        model.tpotMicros(endpoint, situation, 1_000) / stepMicros(requests + 1, contextTokens + 1_000, speed);
      assert.ok(Math.abs(ttft - 1) < 0.05, `${endpoint}: TTFT ${ttft} of what it takes`);
      assert.ok(Math.abs(tpot - 1) < 0.05, `${endpoint}: TPOT ${tpot} of what it takes`);
    }
  }
});

test("an endpoint that it has not seen is a mean one, and one that left is forgotten", () => {
  const model = taught({ fast: 1, slow: 3 }, 300);
  const situation = { ...ALONE, requests: 5, contextTokens: 4_000 };
  const [fast, slow, unseen] = ["fast", "slow", "unseen"].map((id) => model.ttftMicros(id, situation));
  assert.ok(fast! < unseen! && unseen! < slow!);
  model.forget("slow");
  assert.equal(model.ttftMicros("slow", situation), unseen);
});

test("endpoints of one kind share a model as long as there is one of them; the next one begins anew", () => {
  const models = new ModelSet(PRIORS);
  const kinds = [PRIORS, { ...PRIORS, stepMicros: 2 * PRIORS.stepMicros }];
  const of = (id: string, kind: number) => models.of({ id, stepTimes: kinds[kind]! });
  const first = of("a", 0);
  assert.equal(of("b", 0), first);
  assert.notEqual(of("c", 1), first);
  models.forget("a");
  models.forget("a");
  assert.equal(of("d", 0), first, "b is still there");
  models.forget("b");
  models.forget("d");
  const anew = of("e", 0);
  assert.notEqual(anew, first, "nobody was left");
  of("e", 1);
  assert.equal(models.lastOf("e"), models.lastOf("c"), "one that changed is of its new kind");
  assert.notEqual(of("f", 0), anew);
});

test("prompts of others stretch the time between tokens, by at most five times", () => {
  const model = new LatencyModel(PRIORS);
  const situation = { ...ALONE, requests: 5, contextTokens: 4_000, newTokens: 10 };
  const quiet = model.tpotMicros("a", situation, 100);
  const busy = model.tpotMicros("a", { ...situation, prefillPerMicro: 0.0125 }, 100);
  assert.ok(Math.abs(busy / quiet - 2) < 1e-9);
  assert.ok(model.tpotMicros("a", { ...situation, prefillPerMicro: 9 }, 100) / quiet < 5.0001);
  const steady = model.tpotMicros("a", { ...situation, prefillPerMicro: 9, prefillPerStep: 50 }, 100);
  assert.ok(Math.abs(steady - quiet - 50 * PRIORS.prefillTokenMicros) < 1e-6, "no more than come with each token");
});

test("whatever is measured, predictions stay finite and above 0", () => {
  const random = randomFor(9, 10);
  const model = new LatencyModel(PRIORS);
  const odd = [0, 1, 1e3, 1e7, 1e12];
  for (let i = 0; i < 3_000; i++) {
    const full = random.next() < 0.3 ? { turnover: 3 * random.next(), ageMicros: 1e6 * random.next() } : {};
    const situation = { ...drawn(random), ...full };
    const micros = odd[Math.floor(random.next() * odd.length)]!;
    if (random.next() < 0.5) model.learnTtft("a", i, situation, micros);
    else model.learnTpot("a", i, { ...situation, prefillPerStep: situation.queuedTokens }, micros);
    for (const time of [model.ttftMicros("a", situation), model.tpotMicros("a", situation, 100)]) {
      assert.ok(Number.isFinite(time) && time > 0, `${time} after ${i} samples`);
    }
  }
});

test("where there is no room, a request waits for a share of the answers of the batch", () => {
  const model = new LatencyModel(PRIORS);
  const room = { ...ALONE, requests: 31, contextTokens: 31_000, prefillPerStep: 0 };
  const full = { ...room, turnover: 0.5, ageMicros: 1e9 };
  const answer = room.answerTokens * model.tpotMicros("a", room, 0);
  const waits = model.ttftMicros("a", full) - model.ttftMicros("a", room);
  assert.ok(Math.abs(waits / answer - 0.5) < 1e-9, `${waits} of an answer's ${answer}`);
  const begun = model.ttftMicros("a", { ...full, ageMicros: 0 }) - model.ttftMicros("a", room);
  assert.ok(Math.abs(begun / answer - 1) < 1e-9, "nobody ends before half an answer later, where all have just begun");
});

test("a batch that makes room more slowly than predicted is found out, and what a prompt takes is not", () => {
  const model = new LatencyModel(PRIORS);
  const full = { ...ALONE, requests: 31, contextTokens: 31_000, prefillPerStep: 0, turnover: 1, ageMicros: 1e9 };
  const before = model.ttftMicros("a", ALONE);
  const measured = 3 * model.ttftMicros("a", full);
  for (let i = 0; i < 60; i++) model.learnTtft("a", i * 100_000, full, measured);
  assert.ok(Math.abs(model.ttftMicros("a", full) / measured - 1) < 0.05, `${model.ttftMicros("a", full)}`);
  assert.equal(model.ttftMicros("a", ALONE), before);
});

test("what the step under way has computed is not waited for again", () => {
  const model = new LatencyModel(PRIORS);
  const queued = { ...ALONE, queuedTokens: 4_000 };
  const [now, later, long] = [0, 100_000, 1e9].map((computingMicros) =>
    model.ttftMicros("a", { ...queued, computingMicros }),
  );
  assert.ok(Math.abs(now! - later! - 100_000) < 1e-6);
  assert.ok(Math.abs(now! - long! - 4_000 * PRIORS.prefillTokenMicros) < 1e-6, "no more than was queued");
});

test("what every request takes, and attention over long prompts, is learned apart from the tokens", () => {
  const random = randomFor(11, 12);
  const model = new LatencyModel(PRIORS);
  const took = ({ newTokens, attentionPairs: pairs }: Situation): number =>
    30_000 + PRIORS.stepMicros * Math.ceil(newTokens / PRIORS.stepTokensMax) + 25 * newTokens + 0.001 * pairs;
  const asked = (promptTokens: number, newTokens: number): Situation => ({
    ...ALONE,
    newTokens,
    attentionPairs: attentionPairs(promptTokens, newTokens),
  });
  for (let i = 0; i < 800; i++) {
    const promptTokens = 100 + Math.floor(random.next() * 100_000);
    const one = asked(promptTokens, Math.max(1, Math.floor(random.next() * promptTokens)));
    model.learnTtft("a", i * 100_000, one, took(one));
  }
  for (const one of [asked(200, 200), asked(4_000, 4_000), asked(100_000, 2_000), asked(100_000, 60_000)]) {
    const ratio = model.ttftMicros("a", one) / took(one);
    assert.ok(Math.abs(ratio - 1) < 0.15, `${one.newTokens} new tokens: ${ratio} of what it takes`);
  }
});
