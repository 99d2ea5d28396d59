import type { WhatIfAnswer } from "../question/what-if.ts";
import { observedHitRatio } from "./figures-table.ts";
import { escaped, percent, point } from "./markup.ts";
import { OBSERVED, type PageData, seriesOf } from "./page-data.ts";

const WIDTH = 460;
const ROW = 34;

/** Prompt tokens found in a cache over all prompt tokens, a bar a profile. */
export function hitChart(answer: WhatIfAnswer, data: PageData): string {
  const ratios = new Map(answer.candidates.map(({ name, hitRatio }) => [name, hitRatio]));
  ratios.set(OBSERVED, observedHitRatio(data));
  const shown = seriesOf(data).filter(({ name }) => Number.isFinite(ratios.get(name) ?? NaN));
  const bars = shown.map(({ name, style }, i) => {
    const ratio = ratios.get(name)!;
    const top = i * ROW + 4;
    return `<text class="label" x="12" y="${top + 12}">${escaped(name)}</text><text class="label end" x="${WIDTH - 12}" y="${top + 12}">${percent(ratio)}</text><rect class="track" x="12" y="${top + 17}" width="${WIDTH - 24}" height="8" rx="4"/><rect class="bar ${style}" x="12" y="${top + 17}" width="${point(Math.max(2, ratio * (WIDTH - 24)))}" height="8" rx="4"/>`;
  });
  return `<figure class="card"><figcaption>Prompt tokens found in the engines' caches</figcaption>
<svg viewBox="0 0 ${WIDTH} ${shown.length * ROW + 8}" role="img" aria-label="Hit ratio by profile">${bars.join("")}</svg></figure>`;
}
