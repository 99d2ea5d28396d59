import assert from "node:assert/strict";
import { test } from "node:test";
import type { Filter } from "#core/filter/filter.ts";
import type { Plugin } from "#core/plugin/plugin.ts";
import { randomFor } from "#core/random.ts";
import { drawState } from "../state.ts";

const STATES = 300;

/** What every filter owes: a verdict of 0 or 1 per candidate, the same each time, and inputs left alone. */
export function filterContract(name: string, plugin: Plugin<Filter>): void {
  const states = Array.from({ length: STATES }, (_, i) => drawState(randomFor(42, i), i % 7 === 0 ? 100 : 6));
  const verdicts = (filter: Filter, i: number) => {
    const { request, candidates } = states[i]!;
    const keep = new Uint8Array(candidates.length + 2).fill(1);
    filter.filter(request, candidates, keep, randomFor(1, i));
    return keep;
  };

  test(`${name}: a verdict of 0 or 1 for every candidate and nothing beyond`, () => {
    const filter = plugin.create(name, {});
    for (let i = 0; i < STATES; i++) {
      const keep = verdicts(filter, i);
      assert.ok(keep.every((value) => value === 0 || value === 1));
      assert.deepEqual(Array.from(keep.slice(states[i]!.candidates.length)), [1, 1]);
    }
  });

  test(`${name}: INV-3, the same state and stream give the same verdicts, on the same and on another instance`, () => {
    const filter = plugin.create(name, {});
    for (let i = 0; i < STATES; i++) {
      const first = verdicts(filter, i);
      assert.deepEqual(verdicts(filter, i), first);
      assert.deepEqual(verdicts(plugin.create(name, {}), i), first);
    }
  });

  test(`${name}: leaves the request and the candidates as they were`, () => {
    const filter = plugin.create(name, {});
    for (const { request, candidates } of states) {
      const before = JSON.stringify([request, candidates]);
      filter.filter(
        Object.freeze(request),
        Object.freeze(candidates),
        new Uint8Array(candidates.length).fill(1),
        randomFor(1, 1),
      );
      assert.equal(JSON.stringify([request, candidates]), before);
    }
  });
}
