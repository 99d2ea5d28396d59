import type { EngineHost } from "./engine-host.ts";
import type { SleepState } from "../metrics/engine-metrics.ts";
import { isComplete, type SequencesAnswer } from "../generation/sequence.ts";

/** What becomes of requests that run: they end with "abort", they end by themselves first, or they go on afterwards. */
export const PAUSE_MODES = ["abort", "wait", "keep"] as const;
export type PauseMode = (typeof PAUSE_MODES)[number];

/**
 * 0 pauses alone; 1 takes the weights off the device; 2 gives all of its memory up. From 1 on no cached block is left,
 * but where requests are kept.
 */
export type SleepLevel = 0 | 1 | 2;

const MEMORY = ["weights", "kv_cache"] as const;
const POLL_MILLIS = 5;

/**
 * vLLM's sleep mode: while it lasts, requests that come are accepted and wait, and none is computed. Memory comes back by
 * tags; requests go on once all of it is there.
 */
export class SleepMode {
  readonly #host: EngineHost;
  readonly #parked = new Set<SequencesAnswer>();
  readonly #asleep = new Set<string>();
  #paused = false;
  #level: SleepLevel = 0;

  constructor(host: EngineHost) {
    this.#host = host;
  }

  get isSleeping(): boolean {
    return this.#paused || this.#asleep.size > 0;
  }

  /** As the metrics page has it. */
  get state(): SleepState {
    const level = this.isSleeping ? this.#level : undefined;
    return {
      awake: level === undefined ? 1 : 0,
      weightsOffloaded: level === 1 ? 1 : 0,
      discardAll: level === 2 ? 1 : 0,
    };
  }

  /** Sequences that wait for its end. */
  get waiting(): number {
    let count = 0;
    for (const { sequences } of this.#parked) count += sequences.length;
    return count;
  }

  submit(answer: SequencesAnswer): void {
    if (this.#paused) this.#parked.add(answer);
    else this.#host.submit(answer);
  }

  cancel(answer: SequencesAnswer): void {
    if (!this.#parked.delete(answer)) this.#host.cancel(answer);
  }

  /** Resolves when nothing is computed any more. */
  async sleep(level: SleepLevel, mode: PauseMode): Promise<void> {
    this.#paused = true;
    if (mode === "keep") this.#host.freeze();
    else this.#host.thaw();
    if (mode === "abort") this.#host.abortAll();
    const empties = level > 0 && mode !== "keep";
    while (this.#paused && this.#isBusy(mode, empties)) {
      await new Promise((done) => void setTimeout(done, POLL_MILLIS));
    }
    if (!this.#paused || level === 0) return;
    this.#level = level;
    for (const tag of MEMORY) this.#asleep.add(tag);
  }

  /**
   * Gives memory back, all of it without tags. Of tags that it does not know or that are awake nothing comes, as in vLLM.
   * True once all is there, and requests go on.
   */
  wake(tags: readonly string[] | undefined): boolean {
    const wanted = tags?.filter((tag) => tag !== "scheduling") ?? MEMORY;
    const named = wanted.length > 0 || tags === undefined;
    if (named && (tags === undefined || wanted.every((tag) => this.#asleep.has(tag)))) {
      for (const tag of wanted) this.#asleep.delete(tag);
    }
    if (this.#asleep.size > 0) return false;
    this.#resume();
    return true;
  }

  /** Hands over what waits, for a server that stops: it ends with everything else. */
  release(): void {
    for (const answer of this.#parked) this.#host.submit(answer);
    this.#parked.clear();
  }

  /** Requests run that are waited for, or the last step is not over, behind which the cache is empty. */
  #isBusy(mode: PauseMode, empties: boolean): boolean {
    return (mode === "wait" && !this.#host.idle) || (empties && !this.#host.resetPrefixCache());
  }

  #resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#level = 0;
    this.#host.thaw();
    for (const answer of this.#parked) if (!isComplete(answer)) this.#host.submit(answer);
    this.#parked.clear();
  }
}
