/** What a browser's page of some origin may do with an answer. */
export interface CorsAnswer {
  /** "*", the page's own origin where it may read the answer, or "" where it may not. */
  readonly origin: string;
}

/** Answers for pages of the origins given; "*" among them is any. */
export class Cors {
  readonly #origins: ReadonlySet<string>;

  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins);
  }

  /** For the value of an Origin header; "" without one. */
  of(origin: string): CorsAnswer {
    if (this.#origins.has("*")) return ANY;
    return origin !== "" && this.#origins.has(origin) ? { origin } : NONE;
  }
}

const ANY: CorsAnswer = { origin: "*" };
const NONE: CorsAnswer = { origin: "" };

/** Headers of an answer that a page may read beside those that each page may. */
const EXPOSED =
  "x-request-id, retry-after, x-gnomon-endpoint, x-gnomon-prefill-endpoint, x-gnomon-reason, x-gnomon-hit-tokens, " +
  "x-gnomon-profile";
const PREFLIGHT_SECONDS = 600;

/** Adds what lets a page in a browser read the answer. */
export function pushCors(headers: string[], { origin }: CorsAnswer): void {
  if (origin !== "*") headers.push("vary", "Origin");
  if (origin === "") return;
  headers.push("access-control-allow-origin", origin, "access-control-expose-headers", EXPOSED);
}

/** Headers of the answer to a preflight, which asks for the headers named. */
export function preflightHeaders(answer: CorsAnswer, requested: string): string[] {
  const headers: string[] = [];
  pushCors(headers, answer);
  if (answer.origin === "") return headers;
  headers.push("access-control-allow-methods", "GET, POST, OPTIONS");
  headers.push("access-control-max-age", String(PREFLIGHT_SECONDS));
  if (requested !== "") headers.push("access-control-allow-headers", requested);
  return headers;
}
