import { NO_ANSWER, failureText, type RedisClient } from "./redis-connection.ts";

const SILENT_TIMEOUTS = 3;

/**
 * A connection on which nothing is answered any more may be one that nobody holds at its other end: a server that lost its
 * power, an address that moved. The system finds out after a quarter of an hour; here it is given up, and made anew, once
 * nothing was answered for SILENT_TIMEOUTS times the limit of one answer.
 */
export class SilenceWatch {
  readonly #client: RedisClient;
  readonly #millisMax: number;
  #since: number | undefined;

  constructor(client: RedisClient, timeoutMillis: number) {
    this.#client = client;
    this.#millisMax = SILENT_TIMEOUTS * timeoutMillis;
  }

  answered(): void {
    this.#since = undefined;
  }

  failed(error: unknown): void {
    if (failureText(error) !== NO_ANSWER) return this.answered();
    const now = performance.now();
    this.#since ??= now;
    if (now - this.#since < this.#millisMax) return;
    this.#since = undefined;
    this.#client.disconnect(true);
  }
}
