import { type BellMemory, newBellMemory } from "./bell.ts";
import { newRingMemory, type RingMemory } from "./shared-ring.ts";

/** What a worker and the thread that decides share. */
export interface WorkerMemory {
  readonly toDecide: RingMemory;
  readonly toWorker: RingMemory;
  /** Of the thread that decides, for all workers. */
  readonly deciding: BellMemory;
  readonly worker: BellMemory;
}

/** Room for the longest prompt that a body may hold, a word a block of a token; only what is written takes memory. */
const TO_DECIDE_BYTES = 64 * 1024 * 1024;
const TO_WORKER_BYTES = 4 * 1024 * 1024;

export function newWorkerMemory(deciding: BellMemory): WorkerMemory {
  return {
    toDecide: newRingMemory(TO_DECIDE_BYTES),
    toWorker: newRingMemory(TO_WORKER_BYTES),
    deciding,
    worker: newBellMemory(),
  };
}
