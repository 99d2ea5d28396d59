import { setFlagsFromString } from "node:v8";

/**
 * Keeps V8 from collecting all of the heap again and again. A full collection is due when old objects have grown by a tenth
 * and by what minor collections may bring them, and V8 begins it as soon as less than that is left: of a heap as small as a
 * gateway's, and one that grows as slowly, at once. In some processes, by chance, full collections then followed one
 * another, one or two a second under load: each takes 0.1 s in steps and 0.1 s at once, forgets code that is compiled again,
 * and nothing dies young meanwhile. That made one gateway cost a quarter more than the same one started again. Now a full
 * collection begins where 70 % of that room is taken.
 */
export function collectSeldom(): void {
  setFlagsFromString("--incremental-marking-soft-trigger=70");
}
