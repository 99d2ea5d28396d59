import { MICROS_PER_MILLI, MICROS_PER_SECOND } from "#core/units.ts";

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

/** Microseconds as 870 µs, 12.3 ms, 4.56 s. */
export function time(micros: number): string {
  const size = Math.abs(micros);
  if (!Number.isFinite(micros)) return "–";
  if (size < MICROS_PER_MILLI) return `${micros.toFixed(0)} µs`;
  if (size < MICROS_PER_SECOND) return `${digits(micros / MICROS_PER_MILLI)} ms`;
  return `${digits(micros / MICROS_PER_SECOND)} s`;
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
  return value.toFixed(size < 10 ? 2 : size < 100 ? 1 : 0);
}

/** A coordinate of a drawing. */
export function point(value: number): string {
  return String(Math.round(value * 10) / 10);
}
