/** Looks at something again and again, each time `watchMillis` after the last look ended, until it is stopped. */
export class RepeatedLook {
  readonly #look: () => Promise<void>;
  readonly #watchMillis: number;
  #timer: NodeJS.Timeout | undefined;
  #underWay: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(look: () => Promise<void>, watchMillis: number) {
    this.#look = look;
    this.#watchMillis = watchMillis;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** The first look comes with the next turn of the event loop. */
  start(): void {
    this.#again(0);
  }

  /** Resolves once a look that is under way has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#underWay;
  }

  #again(waitMillis: number): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#underWay = this.#look().finally(() => this.#again(this.#watchMillis));
    }, waitMillis).unref();
  }
}
