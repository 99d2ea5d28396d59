import { appendFileSync, existsSync, readFileSync } from "node:fs";

/**
 * What runs of a bench came to, kept in a file, a line each, so that many of them are made in pieces: none is made twice,
 * and none is begun once the piece has had its time.
 */
export class KeptRuns {
  readonly #file: string | undefined;
  readonly #known = new Map<string, unknown>();
  readonly #until: number;

  /** `pieceSeconds`: from now on; without a file nothing is kept. */
  constructor(file: string | undefined, pieceSeconds = Infinity) {
    this.#file = file;
    this.#until = performance.now() + 1_000 * pieceSeconds;
    if (file === undefined || !existsSync(file)) return;
    for (const line of readFileSync(file, "utf8").split("\n")) {
      if (line === "") continue;
      const [key, result] = JSON.parse(line) as [string, unknown];
      this.#known.set(key, result);
    }
  }

  /** Undefined where it is not known and there is no time left for it. */
  result<Result>(key: string, make: () => Result): Result | undefined {
    return this.#isDue(key) ? this.#kept(key, make()) : (this.#known.get(key) as Result | undefined);
  }

  /** The same of a run that is waited for. */
  async resultOf<Result>(key: string, make: () => Promise<Result>): Promise<Result | undefined> {
    return this.#isDue(key) ? this.#kept(key, await make()) : (this.#known.get(key) as Result | undefined);
  }

  #isDue(key: string): boolean {
    return !this.#known.has(key) && performance.now() <= this.#until;
  }

  #kept<Result>(key: string, result: Result): Result {
    if (this.#file !== undefined) appendFileSync(this.#file, `${JSON.stringify([key, result])}\n`);
    return result;
  }
}
