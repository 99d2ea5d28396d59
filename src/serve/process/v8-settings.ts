import { executionAsyncResource } from "node:async_hooks";
import { setFlagsFromString } from "node:v8";

/** For as long as the process runs. */
const KEPT: object[] = [];

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
 * - **Threads share a minor collection.** That is quicker where cores are idle; a gateway's few live objects are not worth
 *   waking them, and their CPU is taken from what else runs there.
 * - **A bound for one thread is one for all.** What the start set as room for objects just made (bin/gnomon.js) has been taken
 *   by the thread that serves; set any longer it would stand above what other threads are given (the shadow's: 8 MB twice).
 * - **Ticks are made in C++.** Node makes an object of each `process.nextTick`, five for a request and two for an event, by a
 *   literal whose keys V8 looks at only while it knows one hidden class of it. A full collection that meets no such object
 *   drops that class, and from then on each takes 0.5 us in place of 0.08. So one is kept.
 * - **Buffers are taken for old objects.** They count towards the limit of those, which stands a tenth above what is left
 *   after a full collection where little is made a second; so 20 conversations a second, or the metrics pages of 32 engines
 *   alone, brought one every 4 s, a third to a half of a gateway's CPU. Now they count towards one of all memory.
 *
 * Full collections are left to V8: marked by a thread beside the one that serves, they stop it for 10 to 20 ms. Marked by
 * that one alone (`--no-concurrent-marking`) it is 70 to 140 ms with bodies of 32 KB, for dead objects stay marked over the
 * longer marking; rarer ones (`--heap-growing-percent`) leave 100 MB more; and one that begins too late for steps
 * (`--incremental-marking-soft-trigger`) forgets hidden classes as an idle one does.
 */
export function setV8(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
  setFlagsFromString("--memory-reducer-gc-count=0");
  setFlagsFromString("--no-parallel-scavenge");
  setFlagsFromString("--max-semi-space-size=0");
  setFlagsFromString("--external-memory-accounted-in-global-limit");
  process.nextTick(() => KEPT.push(executionAsyncResource()));
}
