import { assert } from "#core/base/assert.ts";
import { Heap } from "#core/base/heap.ts";
import type { SchedulerPolicy } from "./config.ts";
import type { Sequence } from "./sequence.ts";

type Precedes = (a: Sequence, b: Sequence) => boolean;

/** Requests that wait for a place in the batch. A preempted one comes back ahead of all others, or where its rank is. */
export interface WaitQueue {
  readonly size: number;
  push(sequence: Sequence): void;
  pushPreempted(sequence: Sequence): void;
  /** The next to be admitted; there must be one. */
  peek(): Sequence;
  shift(): Sequence;
  /** Takes out a request that must be in the queue. */
  remove(sequence: Sequence): void;
}

/** An empty queue in the order of the policy. */
export function createWaitQueue(policy: SchedulerPolicy): WaitQueue {
  switch (policy) {
    case "fcfs":
      return new ArrivalOrder();
    case "priority-fcfs":
      return new RankOrder((a, b) => {
        if (a.request.priority !== b.request.priority) return a.request.priority < b.request.priority;
        return arrivedBefore(a, b);
      });
    case "reverse-priority":
      return new RankOrder((a, b) => {
        if (a.request.priority !== b.request.priority) return a.request.priority > b.request.priority;
        return arrivedBefore(a, b);
      });
    case "sjf":
      return new RankOrder((a, b) => {
        if (a.request.promptTokens !== b.request.promptTokens) return a.request.promptTokens < b.request.promptTokens;
        return arrivedBefore(a, b);
      });
  }
}

function arrivedBefore(a: Sequence, b: Sequence): boolean {
  if (a.submittedAt !== b.submittedAt) return a.submittedAt < b.submittedAt;
  return a.request.id < b.request.id;
}

/** A ring that takes from the front and puts at both ends. */
class ArrivalOrder implements WaitQueue {
  size = 0;
  #ring: (Sequence | undefined)[] = Array.from({ length: 64 });
  #first = 0;

  push(sequence: Sequence): void {
    this.#makeRoom();
    this.#ring[(this.#first + this.size) & (this.#ring.length - 1)] = sequence;
    this.size++;
  }

  pushPreempted(sequence: Sequence): void {
    this.#makeRoom();
    this.#first = (this.#first - 1) & (this.#ring.length - 1);
    this.#ring[this.#first] = sequence;
    this.size++;
  }

  peek(): Sequence {
    return this.#at(0);
  }

  shift(): Sequence {
    const sequence = this.#at(0);
    this.#ring[this.#first] = undefined;
    this.#first = (this.#first + 1) & (this.#ring.length - 1);
    this.size--;
    return sequence;
  }

  remove(sequence: Sequence): void {
    const mask = this.#ring.length - 1;
    let i = 0;
    while (i < this.size && this.#ring[(this.#first + i) & mask] !== sequence) i++;
    assert(i < this.size, "a removed request waits");
    for (; i < this.size - 1; i++) {
      this.#ring[(this.#first + i) & mask] = this.#ring[(this.#first + i + 1) & mask];
    }
    this.size--;
    this.#ring[(this.#first + this.size) & mask] = undefined;
  }

  #at(offset: number): Sequence {
    const sequence = this.#ring[(this.#first + offset) & (this.#ring.length - 1)];
    assert(sequence !== undefined, "a request waits");
    return sequence;
  }

  #makeRoom(): void {
    const { length } = this.#ring;
    if (this.size < length) return;
    const grown: (Sequence | undefined)[] = Array.from({ length: length * 2 });
    for (let i = 0; i < this.size; i++) grown[i] = this.#ring[(this.#first + i) & (length - 1)];
    this.#ring = grown;
    this.#first = 0;
  }
}

/** The first by rank. */
class RankOrder implements WaitQueue {
  readonly #heap: Heap<Sequence>;

  constructor(precedes: Precedes) {
    this.#heap = new Heap(precedes);
  }

  get size(): number {
    return this.#heap.size;
  }

  push(sequence: Sequence): void {
    this.#heap.push(sequence);
  }

  pushPreempted(sequence: Sequence): void {
    this.#heap.push(sequence);
  }

  peek(): Sequence {
    const { first } = this.#heap;
    assert(first !== undefined, "a request waits");
    return first;
  }

  shift(): Sequence {
    return this.#heap.shift();
  }

  remove(sequence: Sequence): void {
    this.#heap.remove(sequence);
  }
}
