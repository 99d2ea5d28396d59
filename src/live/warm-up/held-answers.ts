/** Answers of a made-up engine that wait halfway until they are let go, so that something can be done meanwhile. */
export class HeldAnswers {
  readonly #goOn: (() => void)[] = [];
  #wanted = 0;
  #reached: (() => void) | undefined;

  /** The next `count` answers wait; resolves once all of them do. */
  hold(count: number): Promise<void> {
    this.#wanted = count;
    return new Promise((resolve) => (this.#reached = resolve));
  }

  /** Goes on with an answer: at once, or later where it is to wait. */
  pass(goOn: () => void): void {
    if (this.#goOn.length === this.#wanted) return goOn();
    this.#goOn.push(goOn);
    if (this.#goOn.length === this.#wanted) this.#reached?.();
  }

  /** Lets all go on. */
  release(): void {
    this.#wanted = 0;
    for (const goOn of this.#goOn.splice(0)) goOn();
  }
}
