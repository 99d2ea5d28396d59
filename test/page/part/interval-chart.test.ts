import assert from "node:assert/strict";
import { test } from "node:test";
import { INTERVAL_LEFT, INTERVAL_RIGHT, intervalChart } from "#page/part/interval-chart.ts";
import { markupText } from "#page/part/markup-text.ts";
import { linearScale } from "#page/part/scale.ts";

test("the texts of ticks at both ends stand within the picture", () => {
  const scale = linearScale(12, 14, INTERVAL_LEFT, INTERVAL_RIGHT, 2);
  const text = markupText(intervalChart({ label: "a chart", scale, tickText: (tick) => `${tick} ms`, rows: [] }));
  const ticks = [...text.matchAll(/<text class="(tick[^"]*)" x="([^"]*)"[^>]*>([^<]*)</g)];
  assert.deepEqual(
    ticks.map(([, style, x, shown]) => [style, x, shown]),
    [
      ["tick", "12", "12 ms"],
      ["tick mid", "230", "13 ms"],
      ["tick end", "448", "14 ms"],
    ],
  );
});
