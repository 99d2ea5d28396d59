import type { Micros } from "../base/units.ts";

/** Blocks that an engine reports to hold. The index gets all of it as it came; only who keeps a field of it names that. */
export interface StoredBlocks {
  readonly at: Micros;
  /** Chain hashes, on the device parent first. */
  readonly hashes: Int32Array;
  /** Blocks at which another chain begins, ascending, where there are several; each in (0, blocks). */
  readonly starts?: readonly number[];
  /**
   * They lie in the memory of the engine's host and are copied to the device before they are used; absent: on the
   * device.
   */
  readonly medium?: "host";
}

/** Blocks that it removed. */
export interface RemovedBlocks {
  readonly at: Micros;
  readonly hashes: Int32Array;
  /** So many more, of which nobody knows what they held: their stores were never seen. */
  readonly unknownBlocks?: number;
  /** As of StoredBlocks. */
  readonly medium?: "host";
}
