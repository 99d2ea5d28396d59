import type { EndpointId } from "./endpoint.ts";

/** Ids of so many endpoints from 0 on, of equal length: the order of a fleet, which is that of text, is that of numbers. */
export function numberedIds(prefix: string, count: number): EndpointId[] {
  const digits = String(count - 1).length;
  return Array.from({ length: count }, (_, number) => `${prefix}_${String(number).padStart(digits, "0")}`);
}
