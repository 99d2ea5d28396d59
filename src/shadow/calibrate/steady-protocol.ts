/** What is asked of an engine at one point: so many users, each again when it is answered, prompts all different. */
export interface ProtocolPoint {
  readonly users: number;
  readonly requests: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
}

const SHORT_TOKENS = 64;
const MIDDLE_TOKENS = 1024;
const LONG_TOKENS = 4096;
const ANSWER_TOKENS = 64;
const USERS_MAX = 32;
/** With less than this, three prompt lengths differ too little. */
const MODEL_TOKENS_MIN = 512;

export interface ProtocolLimits {
  /** max_model_len */
  readonly modelTokensMax: number;
  /** max_num_seqs */
  readonly sequencesMax: number;
}

/**
 * The shortest measurement that separates all coefficients: three prompt lengths with one user (base and delay, prefill
 * token, pairs), and two of them with many (decodes, context). Undefined for a model of too few tokens.
 */
export function steadyProtocol({ modelTokensMax, sequencesMax }: ProtocolLimits): readonly ProtocolPoint[] | undefined {
  if (modelTokensMax < MODEL_TOKENS_MIN || sequencesMax < 2) return undefined;
  const long = Math.min(LONG_TOKENS, modelTokensMax - 2 * ANSWER_TOKENS);
  const middle = Math.min(MIDDLE_TOKENS, Math.floor(long / 3));
  const users = Math.min(USERS_MAX, sequencesMax);
  const point = (users: number, requests: number, promptTokens: number): ProtocolPoint => {
    return { users, requests, promptTokens, outputTokens: ANSWER_TOKENS };
  };
  return [
    point(1, 4, SHORT_TOKENS),
    point(1, 4, middle),
    point(1, 3, long),
    point(users, 3 * users, SHORT_TOKENS),
    point(users, 2 * users, middle),
  ];
}
