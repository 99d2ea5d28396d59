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
    const known = this.#known.get(key) as Result | undefined;
    if (known !== undefined || performance.now() > this.#until) return known;
    const result = make();
    if (this.#file !== undefined) appendFileSync(this.#file, `${JSON.stringify([key, result])}\n`);
    return result;
  }
}
