import assert from "node:assert/strict";
import { test } from "node:test";
import type { Endpoint } from "#core/endpoint/endpoint.ts";
import type { StepTimes } from "#core/endpoint/step-times.ts";
import type { Input } from "#core/input/input.ts";
import { randomFor } from "#core/base/random.ts";
import { EndpointSpeeds } from "#core/scorer/added-latency.ts";
import { FORECASTER_PARAMETERS, LatencyForecaster } from "#core/scorer/latency-forecaster.ts";
import { observeTraffic } from "../observed-traffic.ts";
import { snapshot } from "../state.ts";

const SEED = 41;
const PROMPT_TOKENS = 700;

const STEP_TIMES: StepTimes = {
  stepMicros: FORECASTER_PARAMETERS.stepMicros.default,
  prefillTokenMicros: FORECASTER_PARAMETERS.prefillTokenMicros.default,
  sequenceMicros: FORECASTER_PARAMETERS.sequenceMicros.default,
  contextTokenMicros: FORECASTER_PARAMETERS.contextTokenMicros.default,
  stepTokensMax: FORECASTER_PARAMETERS.stepTokensMax.default,
};
const PRIORS = { ...STEP_TIMES, outputTokensGuess: FORECASTER_PARAMETERS.outputTokensGuess.default };
const SLOWER: StepTimes = { ...STEP_TIMES, stepMicros: 21_000, prefillTokenMicros: 90 };

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

test("what is kept by place is what the models have, whoever comes, changes, leaves or stands elsewhere", () => {
  const random = randomFor(SEED, 1);
  const speeds = new EndpointSpeeds(1);
  const looked = new LatencyForecaster(PRIORS, "requests");
  const there = new Map<string, Endpoint>();
  let learned = 0;
  const observeBoth = (...seen: Parameters<LatencyForecaster["observe"]>): void => {
    speeds.observe(...seen);
    looked.observe(...seen);
  };
  const compare = (): void => {
    const candidates = [...there.values()]
      .filter(() => random.below(4) > 0)
      .map((endpoint) => snapshot({ ...endpoint, endpoint }));
    if (random.below(5) === 0) candidates.reverse();
    if (candidates.length === 0) return;
    speeds.look(candidates, PROMPT_TOKENS);
    const models = candidates.map((candidate) => looked.modelOf(candidate));
    const prompts = models.map((model, i) => model.tokenMicros * model.ttftSpeed(candidates[i]!.id));
    const steps = models.map((model, i) => model.stepMicros(PROMPT_TOKENS) * model.tpotSpeed(candidates[i]!.id));
    for (let i = 0; i < candidates.length; i++) {
      assert.equal(speeds.prompt(i), 1 + (prompts[i]! / mean(prompts) - 1));
      assert.equal(speeds.step(i), 1 + (steps[i]! / mean(steps) - 1));
      if (speeds.prompt(i) !== 1) learned++;
    }
  };
  const change = (at: number): void => {
    const known = [...there.values()];
    const one = known[random.below(Math.max(1, known.length))];
    if (one === undefined) return;
    const { stepTimes: _, ...plain } = one;
    const endpoint = random.below(2) === 0 ? { ...plain, stepTimes: SLOWER } : plain;
    there.set(one.id, endpoint);
    observeBoth({ kind: "endpoint-changed", at, endpoint }, undefined, undefined);
  };
  observeTraffic({
    observe(input: Input, decision, request) {
      observeBoth(input, decision, request);
      if (input.kind === "endpoint-joined") there.set(input.endpoint.id, input.endpoint);
      if (input.kind === "endpoint-left") there.delete(input.endpoint);
      compare();
      if (random.below(20) > 0) return;
      change(input.at);
      compare();
    },
  });
  assert.ok(learned > 100, `${learned} candidates whose speed differs from the mean`);
});
