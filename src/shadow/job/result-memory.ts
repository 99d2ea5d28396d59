import { createHash } from "node:crypto";

/** Results of long work by digests of what they are of, so that work which was interrupted goes on where it was. */
export interface ResultMemory {
  /** Undefined for one that is not there. */
  get(key: string): unknown;
  put(key: string, result: unknown): void;
}

/** What long work is done with, beside what it is about: none of it changes a result. */
export interface WorkKeeping {
  /** Results of before, which are not computed again. */
  readonly memory?: ResultMemory | undefined;
  /** Once it is aborted, what is not done yet fails with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** The same text for the same plain data, in which there may be typed arrays and maps. */
export function jobDigest(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value, plain)).digest("hex");
}

function plain(_key: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) return `#${value}`;
  if (value instanceof Map) return [...(value as ReadonlyMap<unknown, unknown>)];
  if (!ArrayBuffer.isView(value)) return value;
  const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  return `#${createHash("sha256").update(bytes).digest("hex")}`;
}
