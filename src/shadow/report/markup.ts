import { MICROS_PER_MILLI } from "#core/units.ts";

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Text from outside, safe in an element and in a quoted attribute. */
export function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}

/** Microseconds as milliseconds, which everything on the page is in: 0.87 ms, 12.3 ms, 4560 ms. */
export function time(micros: number): string {
  return Number.isFinite(micros) ? `${millis(micros)} ms` : "–";
}

/** The same without its unit, where a head has it. */
export function millis(micros: number): string {
  return Number.isFinite(micros) ? digits(micros / MICROS_PER_MILLI) : "–";
}

export function signedTime(micros: number): string {
  return `${micros > 0 ? "+" : ""}${time(micros).replace("-", "−")}`;
}

export function percent(share: number, places = 1): string {
  return Number.isFinite(share) ? `${(100 * share).toFixed(places)} %` : "–";
}

export function signedPercent(share: number, places = 1): string {
  return `${share > 0 ? "+" : ""}${percent(share, places).replace("-", "−")}`;
}

/** Three significant digits or so. */
function digits(value: number): string {
  const size = Math.abs(value);
  if (size > 0 && size < 0.1) return value.toPrecision(2);
  return value.toFixed(size < 10 ? 2 : size < 100 ? 1 : 0);
}

/** A coordinate of a drawing. */
export function point(value: number): string {
  return String(Math.round(value * 10) / 10);
}
