import assert from "node:assert/strict";
import { test } from "node:test";
import { LatencyModel, type Situation } from "#core/latency/latency-model.ts";
import { type Random, randomFor } from "#core/random.ts";

const PRIORS = {
  stepMicros: 8_000,
  prefillTokenMicros: 40,
  sequenceMicros: 20,
  contextTokenMicros: 0.08,
  stepTokensMax: 8_192,
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
      model.learnTpot(endpoint, i * 100_000, { requests, contextTokens, prefillPerMicro: 0 }, micros);
    }
  }
  return model;
}

function drawn(random: Random): Situation {
  const requests = Math.floor(random.next() * 40);
  return {
    requests,
    contextTokens: requests * Math.floor(random.next() * 4_000),
    queuedTokens: Math.floor(random.next() * 8_000),
    newTokens: 1 + Math.floor(random.next() * 6_000),
    prefillPerMicro: 0,
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
  const situation = { requests: 5, contextTokens: 4_000, queuedTokens: 0, newTokens: 1_000, prefillPerMicro: 0 };
  const [fast, slow, unseen] = ["fast", "slow", "unseen"].map((id) => model.ttftMicros(id, situation));
  assert.ok(fast! < unseen! && unseen! < slow!);
  model.forget("slow");
  assert.equal(model.ttftMicros("slow", situation), unseen);
});

test("prompts of others stretch the time between tokens, by at most five times", () => {
  const model = new LatencyModel(PRIORS);
  const situation = { requests: 5, contextTokens: 4_000, queuedTokens: 0, newTokens: 10, prefillPerMicro: 0 };
  const quiet = model.tpotMicros("a", situation, 100);
  const busy = model.tpotMicros("a", { ...situation, prefillPerMicro: 0.0125 }, 100);
  assert.ok(Math.abs(busy / quiet - 2) < 1e-9);
  assert.ok(model.tpotMicros("a", { ...situation, prefillPerMicro: 9 }, 100) / quiet < 5.0001);
});

test("whatever is measured, predictions stay finite and above 0", () => {
  const random = randomFor(9, 10);
  const model = new LatencyModel(PRIORS);
  const odd = [0, 1, 1e3, 1e7, 1e12];
  for (let i = 0; i < 3_000; i++) {
    const situation = drawn(random);
    const micros = odd[Math.floor(random.next() * odd.length)]!;
    if (random.next() < 0.5) model.learnTtft("a", i, situation, micros);
    else model.learnTpot("a", i, situation, micros);
    for (const time of [model.ttftMicros("a", situation), model.tpotMicros("a", situation, 100)]) {
      assert.ok(Number.isFinite(time) && time > 0, `${time} after ${i} samples`);
    }
  }
});
