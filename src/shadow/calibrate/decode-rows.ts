import { type Evidence, promptTokensOf, type Served, tpotOf } from "./evidence.ts";

/** What an engine did between a request's first and last token, as far as a trace shows. */
export interface DecodeRow {
  /** When it had its first token. */
  readonly firstAt: number;
  /** Its tokens after the first: steps. */
  readonly steps: number;
  readonly micros: number;
  /** Answers that were decoded meanwhile, its own included, averaged over time. */
  readonly concurrency: number;
  /** Tokens before the decodes of a step, summed over those requests, averaged over time. */
  readonly contextTokens: number;
  /** Prompts that came between, and their tokens that were not cached. */
  readonly prefills: number;
  readonly prefillTokens: number;
}

/** Tokens of its prompts that the engine had to compute. */
export function prefilledTokens(row: Served): number {
  const { cachedTokens } = row;
  return Math.max(1, promptTokensOf(row) - (Number.isNaN(cachedTokens) ? 0 : cachedTokens));
}

/** A row for each of the first `count` requests that was answered whole with two tokens or more. */
export function decodeRows({ rows, endpoints }: Evidence, count: number = rows.length): DecodeRow[] {
  const made: DecodeRow[] = [];
  for (let endpoint = 0; endpoint < endpoints.length; endpoint++) {
    const here = rows.slice(0, count).filter((row) => row.endpoint === endpoint && row.ok);
    let earliest = 0;
    here.forEach((row, i) => {
      // Requests that ended before this one came cannot meet any that comes later.
      while (earliest < i && endOf(here[earliest]!) < row.arrivalAt) earliest++;
      if (row.outputTokens > 1 && tpotOf(row) > 0) made.push(rowOf(row, here, earliest));
    });
  }
  return made;
}

function rowOf(row: Served, others: readonly Served[], earliest: number): DecodeRow {
  const [from, to] = [row.arrivalAt + row.ttftMicros, endOf(row)];
  let overlap = 0;
  let context = 0;
  let prefills = 0;
  let prefillTokens = 0;
  for (let i = earliest; i < others.length; i++) {
    const other = others[i]!;
    if (other.arrivalAt >= to) break;
    const first = other.arrivalAt + other.ttftMicros;
    const shared = Math.min(to, endOf(other)) - Math.max(from, first);
    if (shared > 0) {
      const { sequences = 1, furtherPrompts = [] } = other;
      overlap += shared * sequences;
      const prompts = (sequences / (1 + furtherPrompts.length)) * promptTokensOf(other);
      context += shared * (prompts + (sequences * other.outputTokens) / 2);
    }
    if (other !== row && first > from && first <= to) {
      prefills++;
      prefillTokens += prefilledTokens(other);
    }
  }
  return {
    firstAt: from,
    steps: row.outputTokens - 1,
    micros: to - from,
    concurrency: overlap / (to - from),
    contextTokens: context / (to - from),
    prefills,
    prefillTokens,
  };
}

function endOf({ arrivalAt, e2eMicros }: Served): number {
  return arrivalAt + e2eMicros;
}
