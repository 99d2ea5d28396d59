import assert from "node:assert/strict";
import { test } from "node:test";
import { type LineChart, lineChart } from "#page/part/line-chart.ts";
import { markupText } from "#page/part/markup-text.ts";
import { linearScale } from "#page/part/scale.ts";

const FRAME = { width: 110, height: 60, left: 10, right: 110, top: 0, bottom: 50 };

function drawn(more: Partial<LineChart>): string {
  const x = { scale: linearScale(0, 10, FRAME.left, FRAME.right), text: String, grid: false };
  const y = { scale: linearScale(0, 5, FRAME.bottom, FRAME.top), text: String, grid: true };
  return markupText(lineChart({ label: "a <chart>", frame: FRAME, x, y, series: [], ...more }));
}

test("a value that is no number breaks the line, and one alone is a point", () => {
  const points = [
    [0, 1],
    [1, 2],
    [2, NaN],
    [3, 5],
    [4, NaN],
  ] as const;
  const text = drawn({ series: [{ name: "s", style: "s0", points }] });
  assert.deepEqual(
    [...text.matchAll(/points="([^"]*)"/g)].map(([, run]) => run),
    ["10,40 20,30", "40,0 40,0"],
  );
});

test("bands are closed shapes, the cursor is an upright line, and the label is text", () => {
  const text = drawn({
    bands: [
      {
        style: "s1",
        points: [
          [0, 1, 2],
          [10, 0, 5],
        ],
      },
    ],
    cursor: 5,
  });
  assert.match(text, /<polygon class="area s1" points="10,30 110,0 110,50 10,40">/);
  assert.match(text, /<line class="cursor" x1="60" x2="60"/);
  assert.match(text, /^<svg viewBox="0 0 110 60" role="img" aria-label="a &lt;chart&gt;">/);
  assert.doesNotMatch(drawn({}), /cursor|NaN/);
});
