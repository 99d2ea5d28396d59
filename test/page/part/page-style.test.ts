import assert from "node:assert/strict";
import { test } from "node:test";
import { PAGE_STYLE } from "#page/part/page-style.ts";

type Rgb = readonly [number, number, number];

const CONTRAST_MIN = 4.5;
/** Colours of texts. */
const INKS = ["ink", "soft", "good", "warn", "bad"];
const GROUNDS = ["bg", "card"];

function colours(text: string): ReadonlyMap<string, Rgb> {
  const found = [...text.matchAll(/--([\w-]+):#([0-9a-f]{3}|[0-9a-f]{6})(?=[;}\n])/g)];
  return new Map(
    found.map(([, name, hex]) => {
      const long = hex!.length === 3 ? hex!.replaceAll(/./g, "$&$&") : hex!;
      return [name!, [0, 2, 4].map((at) => Number.parseInt(long.slice(at, at + 2), 16)) as unknown as Rgb];
    }),
  );
}

/** Relative luminance and contrast as WCAG 2.2 defines them. */
function luminance(colour: Rgb): number {
  const [r, g, b] = colour.map((part) =>
    part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

function contrast(a: Rgb, b: Rgb): number {
  const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (light! + 0.05) / (dark! + 0.05);
}

/** What a row in trouble is shaded with. */
function mixed(top: Rgb, ground: Rgb, share: number): Rgb {
  return ground.map((part, i) => share * top[i]! + (1 - share) * part) as unknown as Rgb;
}

test("every colour of text has enough contrast on every ground, in light and in dark", () => {
  const [light, dark] = PAGE_STYLE.split("@media (prefers-color-scheme:dark)");
  for (const [scheme, text] of [
    ["light", light!],
    ["dark", dark!],
  ] as const) {
    const known = colours(text);
    const grounds = [
      ...GROUNDS.map((name) => [name, known.get(name)!] as const),
      ["troubled", mixed(known.get("bad")!, known.get("card")!, 0.07)] as const,
    ];
    for (const ink of INKS) {
      for (const [name, ground] of grounds) {
        const ratio = contrast(known.get(ink)!, ground);
        assert.ok(ratio >= CONTRAST_MIN, `${scheme}: ${ink} on ${name} has ${ratio.toFixed(2)}`);
      }
    }
  }
});
