import { createExtents, EXTENT_WORDS, type ExtentRecords } from "./extent-record.ts";

/**
 * An engine's largest array, kept for the next engine of the same size. For those that run many short-lived engines one
 * after another: a megabyte or two for each makes the garbage collector mark all there is, again and again.
 */
export class EngineMemory {
  #records: ExtentRecords | undefined;

  /** Blank records of so many extents. The engine that had them before must not be used any more. */
  recordsOf(extents: number): ExtentRecords {
    const kept = this.#records;
    if (kept?.length === (extents + 1) * EXTENT_WORDS) return kept.fill(0);
    this.#records = createExtents(extents);
    return this.#records;
  }
}
