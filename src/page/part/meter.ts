import { bar } from "./bar.ts";
import { type MarkupContent, element, type Markup } from "./markup.ts";

const WIDTH = 60;
const HEIGHT = 6;
const HIGH = 0.9;
const LOW = 0.75;

/** A share in [0, 1] as a small bar beside its text, in a colour of its own where it is high. */
export function meter(share: number, text: MarkupContent): Markup {
  const style = share >= HIGH ? "bad" : share >= LOW ? "warn" : "s0";
  const drawing = element(
    "svg",
    { class: "meter", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true" },
    bar({ style, share, x: 0, y: 0, width: WIDTH, height: HEIGHT }),
  );
  return element("span", { class: "metered" }, drawing, text);
}
