import { randomInt } from "node:crypto";
import { isFields, laxBoolean } from "../base/fields.ts";
import type { ParsedRequest } from "../request/parse-request.ts";
import type { Dialect } from "../http/route.ts";
import { isGreedy } from "./continuation-plan.ts";

/** Routes whose streams are read event by event. */
export type RepeatedDialect = Exclude<Dialect, "other">;

/**
 * What a request must have beside its own fields so that another engine makes the same answer of it, as far as engines
 * repeat themselves: nothing where it takes the likeliest token each time, or draws by a seed that the request states; a seed
 * where it may be given one (`seeds`). Undefined where no field does it. What an answer has beside its text
 * (log-probabilities, ids) is not held against what the client has, so such answers are left out.
 */
export function fieldsToRepeat(parsed: ParsedRequest, dialect: RepeatedDialect, seeds: boolean): object | undefined {
  const { fields, stream, sequences } = parsed;
  if (!stream || fields === undefined || sequences !== 1) return undefined;
  if (UNREPEATED.some((name) => isStated(fields[name]))) return undefined;
  if (dialect === "responses" && !isOneTurn(fields)) return undefined;
  if (isGreedy(fields)) return {};
  // Anthropic's messages have no seed, and vLLM passes over one.
  if (dialect === "messages") return undefined;
  if (Number.isSafeInteger(fields["seed"])) return {};
  return seeds && (fields["seed"] ?? null) === null ? { seed: randomInt(SEED_MAX) } : undefined;
}

/** Engines take any of 63 bits, and JSON has fewer. */
const SEED_MAX = 2 ** 31;

const UNREPEATED = [
  "logprobs",
  "top_logprobs",
  "prompt_logprobs",
  "return_token_ids",
  "use_beam_search",
  "best_of",
  "include",
  "background",
];

function isStated(value: unknown): boolean {
  return (value ?? null) !== null && laxBoolean(value) !== false && !(Array.isArray(value) && value.length === 0);
}

/** The engine itself calls other tools, which may answer otherwise. */
function isOneTurn({ tools }: { readonly tools?: unknown }): boolean {
  return !Array.isArray(tools) || tools.every((tool) => isFields(tool) && tool["type"] === "function");
}
