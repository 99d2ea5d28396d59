import { bar } from "#page/part/bar.ts";
import { figure } from "#page/part/figure.ts";
import { percent } from "#page/part/format.ts";
import { element } from "#page/part/markup.ts";
import { markupText } from "#page/part/markup-text.ts";
import type { WhatIfAnswer } from "../question/what-if.ts";
import { observedHitRatio } from "./figures-table.ts";
import { OBSERVED, type PageData, seriesOf } from "./page-data.ts";

const WIDTH = 460;
const ROW = 34;
const LEFT = 12;

/** Prompt tokens found in a cache over all prompt tokens, a bar a profile. */
export function hitChart(answer: WhatIfAnswer, data: PageData): string {
  const ratios = new Map(answer.candidates.map(({ name, hitRatio }) => [name, hitRatio]));
  ratios.set(OBSERVED, observedHitRatio(data));
  const shown = seriesOf(data).filter(({ name }) => Number.isFinite(ratios.get(name) ?? NaN));
  const rows = shown.flatMap(({ name, style }, i) => {
    const share = ratios.get(name)!;
    const top = i * ROW + 4;
    return [
      element("text", { class: "label", x: LEFT, y: top + 12 }, name),
      element("text", { class: "label end", x: WIDTH - LEFT, y: top + 12 }, percent(share)),
      ...bar({ style, share, x: LEFT, y: top + 17, width: WIDTH - 2 * LEFT, height: 8 }),
    ];
  });
  const size = `0 0 ${WIDTH} ${shown.length * ROW + 8}`;
  const drawing = element("svg", { viewBox: size, role: "img", "aria-label": "Hit ratio by profile" }, rows);
  return markupText(figure("Prompt tokens found in the engines' caches", drawing));
}
