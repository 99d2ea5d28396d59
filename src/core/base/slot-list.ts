/** Keeps its own place in a SlotList. */
export interface Slotted {
  slot: number;
}

/**
 * A list whose members leave in constant time: the last one takes the place. Looked through from its end, so that a member
 * may leave as it is looked at. Members in an order that only their coming and going decides.
 */
export class SlotList<T extends Slotted> {
  readonly #members: T[] = [];

  get size(): number {
    return this.#members.length;
  }

  add(member: T): void {
    member.slot = this.#members.push(member) - 1;
  }

  remove(member: T): void {
    const last = this.#members.pop()!;
    if (last === member) return;
    this.#members[member.slot] = last;
    last.slot = member.slot;
  }

  each(look: (member: T) => void): void {
    for (let i = this.#members.length - 1; i >= 0; i--) {
      const member = this.#members[i];
      if (member !== undefined) look(member);
    }
  }

  /**
   * Looks at up to `count` of those below place `from`, from there on down. Returns below which place the rest lies; 0 once
   * all were looked at. Whoever stays while one part after the other is looked at is not left out, but may come twice.
   */
  eachBelow(from: number, count: number, look: (member: T) => void): number {
    const start = Math.min(from, this.#members.length);
    const end = Math.max(0, start - count);
    for (let i = start - 1; i >= end; i--) {
      const member = this.#members[i];
      if (member !== undefined) look(member);
    }
    return end;
  }

  some(is: (member: T) => boolean): boolean {
    return this.#members.some(is);
  }
}
