import { InvalidArgumentError } from "commander";

/** A flag's number in [min, max]; commander prints the flag before the message. */
export function numberIn(min: number, max: number = Number.POSITIVE_INFINITY): (text: string) => number {
  return (text) => {
    const value = text.trim() === "" ? Number.NaN : Number(text);
    if (value >= min && value <= max) return value;
    throw new InvalidArgumentError(`expected a number ${rangeText(min, max)}.`);
  };
}

export function wholeIn(min: number, max: number = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = text.trim() === "" ? Number.NaN : Number(text);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`expected a whole number ${rangeText(min, max)}.`);
  };
}

/** A number above 0. */
export function positive(text: string): number {
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new InvalidArgumentError("expected a number above 0.");
}

export function urlList(text: string, before: readonly string[] = []): string[] {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new InvalidArgumentError("expected a URL such as http://127.0.0.1:8080.");
  }
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new InvalidArgumentError("expected an http:// or https:// URL.");
  return [...before, text.replace(/\/$/, "")];
}

/** "name: value", collected; the value is not shown in errors. */
export function headerList(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const colon = text.indexOf(":");
  const name = text.slice(0, colon).trim().toLowerCase();
  if (colon < 1 || !/^[\w!#$%&'*+.^`|~-]+$/.test(name)) throw new InvalidArgumentError('expected "name: value".');
  return { ...before, [name]: text.slice(colon + 1).trim() };
}

function rangeText(min: number, max: number): string {
  if (max === Number.POSITIVE_INFINITY || max === Number.MAX_SAFE_INTEGER) return `>= ${min}`;
  return `in [${min}, ${max}]`;
}
