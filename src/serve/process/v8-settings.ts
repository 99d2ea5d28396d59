import { setFlagsFromString } from "node:v8";

/**
 * Keeps V8 from what it does by itself and what a server pays for. To be called before the code that serves is loaded.
 *
 * - **Requests are put among old objects at once.** V8 learns per place in the code what tends to live long, and learns it
 *   wrongly where start and warm-up fill the heap: then dead requests hold their whole graph (headers, streams, decisions)
 *   until the next full collection, each minor collection copies 4 MB, and a request of 2 KB costs 110 us in place of 62.
 * - **All of the heap is collected because nothing happens.** Some seconds after the last request V8 gives memory back, and
 *   drops the hidden classes of which no object is left: sockets, requests, answers. The code that was compiled for them
 *   goes as well, 200 to 300 functions, and the next 40,000 requests pay for compiling it again: 87 us of CPU and 32 more of
 *   the compilers' threads in place of 55 and 2 (2 KB, after a pause of 9 s). What is left over after a quiet moment is
 *   collected with the next requests, as under load.
 * - **Threads share a collection.** That is quicker where cores are idle; a gateway's few live objects are not worth waking
 *   them, and their CPU is taken from what else runs there: with bodies of 32 KB 20 to 100 us a request.
 * - **Full collections follow one another.** Old objects may grow by a tenth, and V8 begins as soon as less room is left than
 *   minor collections may bring: of a heap as small as a gateway's at once, so that some processes collect everything once or
 *   twice a second under load, each time 0.1 s in steps and 0.1 s at once. Now they may grow by half. Nor may it begin too
 *   late (`--incremental-marking-soft-trigger`): a collection without steps before it forgets hidden classes as an idle one
 *   does, those of streams while none is under way, and up to 100 compiled functions with them.
 */
export function setV8(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
  setFlagsFromString("--memory-reducer-gc-count=0");
  setFlagsFromString("--no-parallel-scavenge");
  setFlagsFromString("--no-concurrent-marking");
  setFlagsFromString("--heap-growing-percent=50");
}
