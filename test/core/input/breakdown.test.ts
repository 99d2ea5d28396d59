import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Snapshot } from "#core/endpoint/snapshot.ts";
import { ColumnBreakdown, DoubleSlab } from "#core/input/breakdown.ts";
import { snapshot } from "../state.ts";

const REMOVERS = ["", ...Array.from({ length: 40 }, (_, i) => `remover-${i}`)];

const snapshots = fc.array(
  fc.record({
    freshness: fc.constantFrom<Snapshot["freshness"]>("fresh", "stale", "unknown"),
    prefixSource: fc.constantFrom<Snapshot["prefixSource"]>("precise", "approximate"),
    loadAgeMicros: fc.integer({ min: -1 }),
    effectiveLoad: fc.double({ noNaN: true }),
    hitTokens: fc.nat(),
    removers: fc.array(fc.nat(REMOVERS.length - 1), { maxLength: 2 }),
  }),
  { minLength: 1, maxLength: 120 },
);

test("law: a row has what the snapshot had, and the last that removed it", () => {
  const slab = new DoubleSlab();
  fc.assert(
    fc.property(snapshots, (rows) => {
      const ids = rows.map((_, i) => `e${i}`);
      const seen = rows.map(({ removers: _removers, ...row }, i) => snapshot({ id: ids[i]!, ...row }));
      const breakdown = new ColumnBreakdown(seen, ids, [{ name: "s", weight: 1 }], REMOVERS, slab);
      rows.forEach(({ removers }, i) => removers.forEach((remover) => breakdown.remove(i, remover)));
      for (const [i, { removers, ...row }] of rows.entries()) {
        const { freshness, prefixSource, loadAgeMicros, effectiveLoad, hitTokens, removedBy } = breakdown.row(i);
        assert.deepEqual({ freshness, prefixSource, loadAgeMicros, effectiveLoad, hitTokens }, row);
        assert.equal(removedBy, REMOVERS[removers.at(-1) ?? 0]);
      }
    }),
  );
});
