import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { AttentionRow } from "#engine/step-time/attention-grid.ts";
import { AttentionTime, USUAL_IMBALANCE } from "#engine/step-time/attention-time.ts";
import { addDecode, addPrefill, type BatchShape, emptyShape } from "#engine/step-time/batch-shape.ts";

/** Times that grow along every axis as measured ones do: a launch, and then more the longer and the more. */
function measured(): AttentionRow[] {
  const rows: AttentionRow[] = [];
  for (const chunk of [0, 16, 256, 2048]) {
    for (const before of chunk === 0 ? [0] : [0, 512, 4096]) {
      for (const decodes of chunk === 0 ? [1, 8, 64, 256] : [0, 1, 8, 64, 256]) {
        for (const context of decodes === 0 ? [0] : [16, 512, 4096, 16384]) {
          const prefill = chunk === 0 ? 0 : 4 + chunk * (before + chunk / 2) * 3e-4;
          const decode = decodes === 0 ? 0 : 6 + Math.max(context * 0.003, decodes * context * 4e-4);
          rows.push([chunk, before, decodes, context, 5 + prefill + decode]);
        }
      }
    }
  }
  return rows;
}

const ATTENTION = new AttentionTime(measured(), USUAL_IMBALANCE);
const EVEN = new AttentionTime(measured(), { partMax: 0, decodesOnlyPartMax: 0, sequences: 0 });

const contexts = fc.array(fc.integer({ min: 1, max: 16_000 }), { minLength: 1, maxLength: 200 });
const prefills = fc.array(fc.record({ start: fc.nat(4000), tokens: fc.integer({ min: 1, max: 700 }) }), {
  maxLength: 3,
});

function shapeOf(decodes: readonly number[], chunks: readonly { start: number; tokens: number }[] = []): BatchShape {
  const shape = emptyShape();
  for (const { start, tokens } of chunks) addPrefill(shape, start, tokens);
  for (const context of decodes) addDecode(shape, context);
  return shape;
}

test("no decode gets cheaper for anybody by a longer context", () => {
  fc.assert(
    fc.property(contexts, prefills, fc.nat(), fc.integer({ min: 1, max: 3000 }), (decodes, chunks, at, more) => {
      const longer = [...decodes];
      longer[at % decodes.length]! += more;
      const before = ATTENTION.micros(shapeOf(decodes, chunks));
      assert.ok(ATTENTION.micros(shapeOf(longer, chunks)) >= before * (1 - 1e-12));
    }),
  );
});

test("uneven contexts take at least as long as even ones of the same sum, and no longer than all at the longest", () => {
  fc.assert(
    fc.property(contexts, prefills, (decodes, chunks) => {
      const mean = decodes.reduce((sum, one) => sum + one, 0) / decodes.length;
      const longest = Math.max(...decodes);
      const uneven = ATTENTION.micros(shapeOf(decodes, chunks));
      const all = (context: number) =>
        ATTENTION.micros(
          shapeOf(
            decodes.map(() => context),
            chunks,
          ),
        );
      assert.ok(uneven >= all(mean) * (1 - 1e-9), "even ones are not dearer");
      assert.ok(uneven <= all(longest) * (1 + 1e-9), "nobody is longer than the longest");
    }),
  );
});

test("one long sequence among many costs what the rule gives, and with imbalance off what the mean costs", () => {
  const decodes = Array.from({ length: 63 }, () => 500);
  const shape = shapeOf([...decodes, 8000]);
  const mean = EVEN.micros(shape);
  const longest = EVEN.micros(shapeOf(Array.from({ length: 64 }, () => 8000)));
  const { sequences, decodesOnlyPartMax } = USUAL_IMBALANCE;
  const expected = mean + Math.min(decodesOnlyPartMax, sequences / 64) * (longest - mean);
  assert.ok(Math.abs(ATTENTION.micros(shape) - expected) < 1e-9 * expected);
  assert.ok(expected > 1.05 * mean);
});

test("beside a prefill the longest of few decodes weighs more than among decodes alone", () => {
  const excess = (chunks: readonly { start: number; tokens: number }[]) => {
    const shape = shapeOf([...Array.from({ length: 29 }, () => 500), 2000], chunks);
    return ATTENTION.micros(shape) - EVEN.micros(shape);
  };
  assert.ok(excess([{ start: 0, tokens: 1000 }]) > 1.5 * excess([]) && excess([]) > 0);
});

test("few decodes beside a long one take no less than that one alone", () => {
  const alone = ATTENTION.micros(shapeOf([16_000]));
  assert.ok(ATTENTION.micros(shapeOf([16_000, 1, 1])) >= alone);
  assert.ok(EVEN.micros(shapeOf([16_000, 1, 1])) < alone);
});
