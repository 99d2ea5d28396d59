const MICROS_PER_MILLI = 1_000;

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** As a sentence begins. */
export function capitalised(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

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

/** Milliseconds as people read them from afar: 0.87 ms, 12.3 ms, 456 ms, 4.56 s. */
export function duration(millis: number | null | undefined): string {
  if (millis === null || millis === undefined || !Number.isFinite(millis)) return "–";
  const size = Math.abs(millis);
  return (size < 999.5 ? `${digits(millis)} ms` : `${digits(millis / 1_000)} s`).replace("-", "−");
}

/** How long ago: 0.4 s, 12 s, 3 min, 5 h, 2 d. */
export function age(millis: number | null): string {
  if (millis === null) return "unknown";
  const seconds = Math.max(0, millis) / 1_000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 119.5) return `${Math.round(seconds)} s`;
  const minutes = seconds / 60;
  if (minutes < 119.5) return `${Math.round(minutes)} min`;
  return minutes < 2_880 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1_440)} d`;
}

/** A number with at most one decimal place: 3, 2.5, 12,345. */
export function count(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  return value.toLocaleString("en", { maximumFractionDigits: 1 });
}

/** A large number in three digits or so: 950, 12.3 k, 4.56 M. */
export function compact(value: number): string {
  if (value < 1_000) return count(value);
  return value < 1e6 ? `${digits(value / 1_000)} k` : `${digits(value / 1e6)} M`;
}

/** Time of day, UTC: 14:03:22. */
export function clock(at: number): string {
  return new Date(at).toISOString().slice(11, 19);
}

/** Day and time of day, UTC: 2026-01-02 14:03:22. */
export function dayAndClock(at: number): string {
  return new Date(at).toISOString().slice(0, 19).replace("T", " ");
}
