import assert from "node:assert/strict";
import { test } from "node:test";
import type { Filter } from "#core/filter/filter.ts";
import type { Plugin } from "#core/plugin/plugin.ts";
import type { ParameterValue } from "#core/plugin/spec.ts";
import { randomFor } from "#core/base/random.ts";
import { guardedRequest, guardedSnapshot } from "../declared-signals.ts";
import { observeTraffic } from "../observed-traffic.ts";
import { parameterChoices } from "../parameter-choices.ts";
import { drawState } from "../state.ts";

/** Small fleets and a few large ones, drawn once: no plugin may change them. */
const STATES = Array.from({ length: 40 }, (_, i) => drawState(randomFor(42, i), i % 20 === 0 ? 100 : 6));
const TEXTS = STATES.map(({ request, candidates }) => JSON.stringify([request, candidates]));

/** What every filter owes, for each choice of its parameters, new and after traffic that it observed. */
export function filterContract(name: string, plugin: Plugin<Filter>): void {
  for (const given of parameterChoices(plugin.parameters)) {
    const title = `${name} ${JSON.stringify(given)}`;
    const experienced = (): Filter => {
      const filter = plugin.create(name, given);
      observeTraffic(filter);
      return filter;
    };
    laws(`${title}, new`, plugin, given, () => plugin.create(name, given));
    laws(`${title}, after traffic`, plugin, given, experienced);
  }
}

function laws(
  title: string,
  plugin: Plugin<Filter>,
  given: Record<string, ParameterValue>,
  create: () => Filter,
): void {
  const verdicts = (filter: Filter, i: number) => {
    const { request, candidates } = STATES[i]!;
    const keep = new Uint8Array(candidates.length + 2).fill(1);
    filter.filter(request, candidates, keep, randomFor(1, i));
    return keep;
  };

  test(`${title}: a verdict of 0 or 1 for every candidate and nothing beyond`, () => {
    const filter = create();
    for (let i = 0; i < STATES.length; i++) {
      const keep = verdicts(filter, i);
      assert.ok(keep.every((value) => value === 0 || value === 1));
      assert.deepEqual(Array.from(keep.slice(STATES[i]!.candidates.length)), [1, 1]);
    }
  });

  test(`${title}: invariant 3, the same state and stream give the same verdicts, on the same and on another instance`, () => {
    const filter = create();
    const another = create();
    for (let i = 0; i < STATES.length; i++) {
      const first = verdicts(filter, i);
      assert.deepEqual(verdicts(filter, i), first);
      assert.deepEqual(verdicts(another, i), first);
    }
  });

  test(`${title}: leaves the request and the candidates as they were`, () => {
    const filter = create();
    for (const [i, { request, candidates }] of STATES.entries()) {
      const keep = new Uint8Array(candidates.length).fill(1);
      filter.filter(Object.freeze(request), Object.freeze(candidates), keep, randomFor(1, 1));
      assert.equal(JSON.stringify([request, candidates]), TEXTS[i]);
    }
  });

  test(`${title}: reads only the signals that it declares`, () => {
    const filter = create();
    const signals = plugin.readsWith(given);
    STATES.forEach(({ request, candidates }, i) => {
      const guarded = candidates.map((one) => guardedSnapshot(one, signals));
      const keep = new Uint8Array(candidates.length).fill(1);
      filter.filter(guardedRequest(request, signals), guarded, keep, randomFor(1, i));
    });
  });
}
