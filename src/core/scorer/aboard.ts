import type { Micros } from "../base/units.ts";

/**
 * What was aboard until some time, added up over time, so that the difference between two times over the time between
 * them is the mean.
 */
interface AboardSum {
  readonly requestMicros: number;
  readonly promptTokenMicros: number;
  readonly computedTokens: number;
}

/** The requests of one endpoint, and those of them whose answers are being made. */
export class Aboard {
  requests = 0;
  promptTokens = 0;
  /** Attention's pairs of prompts that are not computed yet. */
  queuedPairs = 0;
  /** Of the same prompts, tokens that were not found in the cache. */
  queuedTokens = 0;
  #answering = 0;
  #answeringPromptTokens = 0;
  /** Since when some prompt has been computed there without a first token. */
  #computingSince: Micros = 0;
  /** Of those whose answers are being made, when that began, added up from `#bornAt` on. */
  #beganMicros = 0;
  readonly #bornAt: Micros;
  #at: Micros;
  #requestMicros = 0;
  #promptTokenMicros = 0;
  #computedTokens = 0;

  constructor(at: Micros) {
    this.#bornAt = at;
    this.#at = at;
  }

  /** Mean time since the answers began that are being made; undefined where none is. */
  ageMicros(at: Micros): Micros | undefined {
    return this.#answering === 0 ? undefined : at - this.#bornAt - this.#beganMicros / this.#answering;
  }

  /** For how long the prompts have been computed that are; 0 where there are none. */
  computingMicros(at: Micros): Micros {
    return this.requests === this.#answering ? 0 : Math.max(0, at - this.#computingSince);
  }

  sent(at: Micros, promptTokens: number, pairs: number): void {
    if (this.requests === this.#answering) this.#computingSince = at;
    this.requests++;
    this.queuedPairs += pairs;
    this.promptTokens += promptTokens;
  }

  /** A prompt is computed, `newTokens` of it there and then, and its answer begins. */
  computed(at: Micros, promptTokens: number, newTokens: number, pairs: number): void {
    this.#until(at);
    this.queuedPairs -= pairs;
    this.#answering++;
    this.#computingSince = at;
    this.#beganMicros += at - this.#bornAt;
    this.#answeringPromptTokens += promptTokens;
    this.#computedTokens += newTokens;
  }

  /** `firstTokenAt` is undefined where its answer had not begun. */
  left(at: Micros, promptTokens: number, pairs: number, firstTokenAt: Micros | undefined): void {
    this.#until(at);
    this.requests--;
    this.promptTokens -= promptTokens;
    if (firstTokenAt === undefined) {
      this.queuedPairs -= pairs;
      return;
    }
    this.#answering--;
    this.#beganMicros -= firstTokenAt - this.#bornAt;
    this.#answeringPromptTokens -= promptTokens;
  }

  until(at: Micros): AboardSum {
    this.#until(at);
    return {
      requestMicros: this.#requestMicros,
      promptTokenMicros: this.#promptTokenMicros,
      computedTokens: this.#computedTokens,
    };
  }

  #until(at: Micros): void {
    const elapsed = Math.max(0, at - this.#at);
    this.#requestMicros += elapsed * this.#answering;
    this.#promptTokenMicros += elapsed * this.#answeringPromptTokens;
    this.#at = Math.max(at, this.#at);
  }
}
