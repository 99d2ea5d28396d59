import { ApproximateIndex } from "#core/prefix/approximate.ts";

/** BLIS's index of its own decisions: what it once learned stays, though the request was refused or given up. */
export class LastingIndex extends ApproximateIndex {
  override withdraw(): void {}
}
