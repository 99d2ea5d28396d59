import type { Random } from "#core/base/random.ts";

/** Sends made-up prompts to engines themselves, behind a gateway's back, until it is stopped. */
export class SecondClient {
  readonly #random: Random;
  readonly #model: string;
  readonly #stop = new AbortController();
  #tasks: Promise<void>[] = [];
  prompts = 0;
  tokens = 0;

  constructor(random: Random, model: string) {
    this.#random = random;
    this.#model = model;
  }

  /** One prompt after another for each engine, of up to `tokensMax` tokens, with pauses of up to `pauseMillisMax`. */
  start(engines: readonly string[], tokensMax: number, pauseMillisMax: number): void {
    this.#tasks = engines.map(async (engine) => {
      while (!this.#stop.signal.aborted) {
        await this.#ask(engine, 64 + this.#random.below(tokensMax - 64));
        await new Promise((resolve) => setTimeout(resolve, this.#random.below(pauseMillisMax)));
      }
    });
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#tasks);
  }

  async #ask(engine: string, tokens: number): Promise<void> {
    const prompt = Array.from({ length: tokens }, () => 1_000 + this.#random.below(100_000));
    const body = JSON.stringify({
      model: this.#model,
      prompt,
      max_tokens: 1 + this.#random.below(40),
      ignore_eos: true,
    });
    const headers = { "content-type": "application/json" };
    try {
      const answer = await fetch(`${engine}/v1/completions`, {
        method: "POST",
        headers,
        body,
        signal: this.#stop.signal,
      });
      await answer.text();
      this.prompts++;
      this.tokens += tokens;
    } catch {
      // The engine is away, or the run is over.
    }
  }
}
