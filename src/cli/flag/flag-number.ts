import { InvalidArgumentError } from "commander";

/** A whole number of a range. */
export function whole(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === "" || !Number.isSafeInteger(value) || value < min || value > max)
      throw new InvalidArgumentError(
        max === Infinity ? `expected a whole number of ${min} or more` : `expected a whole number of ${min} to ${max}`,
      );
    return value;
  };
}

/** A number of a range. */
export function amountFlag(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === "" || !(value >= min && value <= max))
      throw new InvalidArgumentError(`expected a number of ${min} to ${max}`);
    return value;
  };
}

/** Above 0, up to 1. */
export function shareFlag(text: string): number {
  const value = Number(text);
  if (!(value > 0 && value <= 1)) throw new InvalidArgumentError("expected a number above 0, up to 1");
  return value;
}
