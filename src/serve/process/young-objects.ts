import { setFlagsFromString } from "node:v8";

/**
 * Keeps V8 from putting what a request allocates among its old objects at once. It learns per place in the code what
 * tends to live long, and learns it wrongly where start and warm-up fill the heap: then dead requests hold their whole
 * graph (headers, streams, decisions) until the next full collection, each minor collection copies 4 MB, and a request
 * of 2 KB costs 110 us in place of 62.
 *
 * To be called before the code that serves is loaded.
 */
export function keepRequestsYoung(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
}
