import { point } from "./format.ts";
import { element, type Markup } from "./markup.ts";

export interface Bar {
  readonly style: string;
  /** In [0, 1]; what lies outside is drawn at the end. */
  readonly share: number;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** A share as a bar on its track: two shapes of an `svg`. */
export function bar({ style, share, x, y, width, height }: Bar): Markup[] {
  const round = height / 2;
  const filled = Math.min(width, Math.max(2, share * width));
  return [
    element("rect", { class: "track", x, y, width, height, rx: round }),
    element("rect", { class: `bar ${style}`, x, y, width: point(filled), height, rx: round }),
  ];
}
