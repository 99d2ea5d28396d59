import assert from "node:assert/strict";
import { test } from "node:test";
import type { Picker } from "#core/picker/picker.ts";
import type { Plugin } from "#core/plugin/plugin.ts";
import type { ParameterValue } from "#core/plugin/spec.ts";
import { randomFor } from "#core/base/random.ts";
import { guardedRequest, guardedSnapshot } from "../declared-signals.ts";
import { parameterChoices } from "../parameter-choices.ts";
import { drawState } from "../state.ts";

/** Small fleets and a few large ones, drawn once: no plugin may change them. */
const STATES = Array.from({ length: 100 }, (_, i) => {
  const random = randomFor(43, i);
  const state = drawState(random, i % 25 === 0 ? 100 : 6);
  return { ...state, totals: Float64Array.from(state.candidates, () => random.below(4) / 3) };
});
const TEXTS = STATES.map((state) => JSON.stringify(state));

/** What every picker owes, for each choice of its parameters. */
export function pickerContract(name: string, plugin: Plugin<Picker>): void {
  for (const given of parameterChoices(plugin.parameters)) laws(name, plugin, given);
}

function laws(name: string, plugin: Plugin<Picker>, given: Record<string, ParameterValue>): void {
  const title = `${name} ${JSON.stringify(given)}`;
  const pick = (picker: Picker, i: number) => {
    const { request, candidates, totals } = STATES[i]!;
    return picker.pick(request, candidates, totals, randomFor(5, i));
  };

  test(`${title}: picks one of the candidates`, () => {
    const picker = plugin.create(name, given);
    for (let i = 0; i < STATES.length; i++) {
      const picked = pick(picker, i);
      assert.ok(Number.isInteger(picked) && picked >= 0 && picked < STATES[i]!.candidates.length);
    }
  });

  test(`${title}: invariant 3, the same state and stream give the same pick, on the same and on another instance`, () => {
    const picker = plugin.create(name, given);
    for (let i = 0; i < STATES.length; i++) {
      const first = pick(picker, i);
      assert.equal(pick(picker, i), first);
      assert.equal(pick(plugin.create(name, given), i), first);
    }
  });

  test(`${title}: leaves the request, the candidates and the totals as they were`, () => {
    const picker = plugin.create(name, given);
    for (let i = 0; i < STATES.length; i++) {
      pick(picker, i);
      assert.equal(JSON.stringify(STATES[i]), TEXTS[i]);
    }
  });

  test(`${title}: a picker that follows totals takes one of the highest`, () => {
    const picker = plugin.create(name, given);
    if (!picker.followsTotals) return;
    for (let i = 0; i < STATES.length; i++) {
      const { totals } = STATES[i]!;
      assert.ok(totals[pick(picker, i)]! >= Math.max(...totals) - Number(given["epsilon"] ?? 0));
    }
  });

  test(`${title}: reads only the signals that it declares`, () => {
    const picker = plugin.create(name, given);
    const signals = plugin.readsWith(given);
    STATES.forEach(({ request, candidates, totals }, i) => {
      const guarded = candidates.map((one) => guardedSnapshot(one, signals));
      picker.pick(guardedRequest(request, signals), guarded, totals, randomFor(5, i));
    });
  });
}
