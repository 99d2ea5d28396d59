/** Share of its time that the event loop worked, above which what can be left undone is. */
const BUSY_SHARE = 0.6;
/** How long a look at it holds. */
const LOOK_MILLIS = 100;

/** Whether the event loop has little time to spare, by the share of the last 100 ms or more that it worked. */
export class LoopLoad {
  #since = performance.eventLoopUtilization();
  #lookedAt = performance.now();
  #isBusy = false;

  get isBusy(): boolean {
    const now = performance.now();
    if (now - this.#lookedAt < LOOK_MILLIS) return this.#isBusy;
    this.#isBusy = performance.eventLoopUtilization(this.#since).utilization > BUSY_SHARE;
    this.#since = performance.eventLoopUtilization();
    this.#lookedAt = now;
    return this.#isBusy;
  }
}
