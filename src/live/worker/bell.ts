/** A thread's bell, in shared memory. */
export type BellMemory = SharedArrayBuffer;

export function newBellMemory(): BellMemory {
  return new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT);
}

const RINGS = 0;
const ASLEEP = 1;

/**
 * Wakes a thread that sleeps; one that is awake looks by itself before it sleeps, and is left alone: a wake costs 20
 * us.
 */
export class Bell {
  readonly #words: Int32Array;

  constructor(memory: BellMemory) {
    this.#words = new Int32Array(memory);
  }

  ring(): void {
    if (Atomics.compareExchange(this.#words, ASLEEP, 1, 0) !== 1) return;
    Atomics.add(this.#words, RINGS, 1);
    Atomics.notify(this.#words, RINGS);
  }

  /** From now on a ring wakes this thread. What came before must be looked for after this. */
  sleeps(): void {
    Atomics.store(this.#words, ASLEEP, 1);
  }

  wakes(): void {
    Atomics.store(this.#words, ASLEEP, 0);
  }

  /** Stops this thread until it rings, at most so long. */
  wait(seen: number, millis: number): void {
    Atomics.wait(this.#words, RINGS, seen, millis);
  }

  /** Calls back when it has rung since `seen`, in a turn of the event loop of its own. */
  whenRung(seen: number, rung: () => void): void {
    const waiting = Atomics.waitAsync(this.#words, RINGS, seen);
    if (waiting.async) void waiting.value.then(rung);
    else setImmediate(rung);
  }

  get rings(): number {
    return Atomics.load(this.#words, RINGS);
  }
}
