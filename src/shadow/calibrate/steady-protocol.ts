import { randomFor } from "#core/base/random.ts";

/**
 * What is asked of an engine at one point: so many users, prompts all different, each user again when it is answered and,
 * where `pauseMicrosMax` is above 0, after a pause of its own.
 */
export interface ProtocolPoint {
  readonly users: number;
  readonly requests: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly pauseMicrosMax?: number | undefined;
}

/** What measurements of one point share. */
export function pointKey({ users, requests, promptTokens, outputTokens, pauseMicrosMax }: ProtocolPoint): string {
  return [users, requests, promptTokens, outputTokens, pauseMicrosMax].join();
}

const SHORT_TOKENS = 64;
const MODERATE_TOKENS = 384;
const MIDDLE_TOKENS = 1024;
const LONG_TOKENS = 4096;
const ANSWER_TOKENS = 64;
const USERS_MAX = 32;
const PAUSE_MICROS_MAX = 500_000;
/** With less than this, three prompt lengths differ too little. */
const MODEL_TOKENS_MIN = 512;

export interface ProtocolLimits {
  /** max_model_len */
  readonly modelTokensMax: number;
  /** max_num_seqs */
  readonly sequencesMax: number;
  /** Tokens that the KV cache holds; those of a point have room at once. */
  readonly cacheTokens?: number | undefined;
}

/**
 * The shortest measurement that separates all coefficients: three prompt lengths with one user (base and delay, prefill
 * token, pairs), and two of them with many (decodes, context), who pause before each request. Without pauses all of them
 * would ask in the same instant, lap after lap: what the server in front of an engine does to such a bunch, one request
 * after another, is no part of other traffic, and nobody comes while others are being answered, which shows how steps are
 * scheduled. Their long prompts leave most of the time to answers: in a queue a little more or less of anything is a lot of
 * waiting, which identifies nothing. Moderate prompts of a few and of many are as most traffic is, and short answers to short
 * prompts show what a prompt costs besides its tokens. Undefined for a model of too few tokens.
 */
export function steadyProtocol({
  modelTokensMax,
  sequencesMax,
  cacheTokens = Infinity,
}: ProtocolLimits): readonly ProtocolPoint[] | undefined {
  const long = Math.min(LONG_TOKENS, modelTokensMax - 2 * ANSWER_TOKENS);
  const middle = Math.min(MIDDLE_TOKENS, Math.floor(long / 3));
  const users = Math.min(USERS_MAX, sequencesMax, Math.floor(cacheTokens / (middle + 2 * ANSWER_TOKENS)));
  if (modelTokensMax < MODEL_TOKENS_MIN || users < 2) return undefined;
  const alone = (requests: number, promptTokens: number): ProtocolPoint => {
    return { users: 1, requests, promptTokens, outputTokens: ANSWER_TOKENS };
  };
  const together = (users: number, laps: number, promptTokens: number, outputTokens: number): ProtocolPoint => {
    return { users, requests: laps * users, promptTokens, outputTokens, pauseMicrosMax: PAUSE_MICROS_MAX };
  };
  return [
    alone(4, SHORT_TOKENS),
    alone(4, middle),
    alone(3, long),
    together(users, 3, SHORT_TOKENS, ANSWER_TOKENS),
    together(Math.max(2, users >> 1), 2, middle, 2 * ANSWER_TOKENS),
    together(Math.max(2, users >> 2), 4, Math.min(MODERATE_TOKENS, middle), ANSWER_TOKENS),
    together(users, 3, Math.min(MODERATE_TOKENS, middle), ANSWER_TOKENS),
    together(users, 4, SHORT_TOKENS, ANSWER_TOKENS >> 2),
  ];
}

/** What passes before a point's request of that number, so that who measures it and who simulates it wait alike. */
export function pauseMicros({ pauseMicrosMax = 0 }: Pick<ProtocolPoint, "pauseMicrosMax">, number: number): number {
  return pauseMicrosMax === 0 ? 0 : Math.floor(pauseMicrosMax * randomFor(PAUSES_SEED, number).next());
}

const PAUSES_SEED = 1;
