import { median } from "#core/base/quantile.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";
import { timedAnswer, type MeasuredEngine, promptsOf } from "./live-engine.ts";

/** Settings that no page of vLLM states, and how each was found; undefined where answers do not show it. */
export interface ShownSizes {
  /** max_num_seqs */
  readonly sequencesMax: number | undefined;
  /** max_num_batched_tokens */
  readonly batchTokensMax: number | undefined;
  readonly notes: readonly string[];
}

/** So many ask at once, each a short prompt and so long an answer. */
const CROWD = 64;
const CROWD_PROMPT_TOKENS = 64;
const CROWD_ANSWER_TOKENS = 64;
/** Who begins before so much of the first answer has come was in the batch with it. */
const TOGETHER = 0.9;
const LONG_TOKENS = 4096;
/** A prompt of fewer tokens is no longer than most batches. */
const LONG_TOKENS_MIN = 1024;
/** Tokens of the answer that shows the steps, and how many of them come before the long prompt is sent. */
const WATCHED_TOKENS = 128;
const BEFORE_TOKENS = 16;
const TRIES = 3;
/** A step with prompt tokens takes so many times one without, or they cannot be distinguished. */
const LONGER = 2;
const SECONDS_MAX = 60;

/**
 * Asks an otherwise idle engine until its answers show how many requests it computes together (of a crowd that asks at
 * once, those whose first tokens come while the first is being answered) and how many tokens a step takes (a long prompt
 * beside an answer: between the answer's tokens there is a longer pause for each part of the prompt). Throws CommandFailure.
 */
export async function shownSizes(engine: MeasuredEngine): Promise<ShownSizes> {
  const signal = AbortSignal.timeout(SECONDS_MAX * 1000);
  const prompts = promptsOf(engine.seed + 1);
  try {
    const sequences = await shownSequences(engine, prompts, signal);
    const batch = await shownBatch(engine, prompts, signal);
    return { ...sequences.size, ...batch.size, notes: [sequences.note, batch.note] };
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new CommandFailure(
      `${engine.url}: expected ${CROWD} short answers and some long prompts within ${SECONDS_MAX} s: --sequences-max and --batch-tokens-max state what they are to show`,
    );
  }
}

async function shownSequences(engine: MeasuredEngine, prompts: (tokens: number) => number[], signal: AbortSignal) {
  const { cacheTokens = Infinity } = engine;
  const crowd = Math.min(CROWD, Math.floor(cacheTokens / (2 * CROWD_PROMPT_TOKENS + CROWD_ANSWER_TOKENS)));
  const ask = () => timedAnswer(engine, prompts(CROWD_PROMPT_TOKENS), CROWD_ANSWER_TOKENS, signal);
  // The first request of a kind compiles kernels.
  await ask();
  const answers = await Promise.all(Array.from({ length: crowd }, ask));
  const together = togetherOf(
    answers.map(({ askedMillis, firstMillis, lastMillis }) => [askedMillis + firstMillis, askedMillis + lastMillis]),
  );
  return together < crowd
    ? {
        size: { sequencesMax: together },
        note: `sequencesMax ${together}: of ${crowd} requests at once so many were answered together`,
      }
    : {
        size: { sequencesMax: undefined },
        note: `sequencesMax: not stated, at least ${crowd}; --sequences-max states it (max_num_seqs)`,
      };
}

/** Of answers' first and last moments: how many had begun when the first of them was about to end. */
export function togetherOf(answers: readonly (readonly [firstMillis: number, lastMillis: number])[]): number {
  const first = Math.min(...answers.map(([begin]) => begin));
  const end = Math.min(...answers.map(([, last]) => last));
  return answers.filter(([begin]) => begin < first + TOGETHER * (end - first)).length;
}

async function shownBatch(engine: MeasuredEngine, prompts: (tokens: number) => number[], signal: AbortSignal) {
  const long = Math.min(LONG_TOKENS, engine.modelTokensMax - 2 * WATCHED_TOKENS);
  const { cacheTokens = Infinity } = engine;
  const unknown = {
    size: { batchTokensMax: undefined },
    note: "batchTokensMax: not stated, and answers do not show it; --batch-tokens-max states it (max_num_batched_tokens)",
  };
  if (long < LONG_TOKENS_MIN || 2 * long > cacheTokens) return unknown;
  const counts = [];
  for (let i = 0; i < TRIES; i++) {
    const parts = await watchedSteps(engine, prompts, long, signal);
    if (parts !== undefined) counts.push(parts);
  }
  const parts = Math.round(median(counts));
  if (!(parts >= 1)) return unknown;
  const batchTokensMax = batchOf(long, parts);
  return {
    size: { batchTokensMax },
    note: `batchTokensMax ${batchTokensMax}: a prompt of ${long} tokens was computed in ${parts} step${parts === 1 ? "" : "s"}`,
  };
}

/**
 * The tokens of a step by which a prompt takes so many steps. Most engines have a power of two, to which a step beside a
 * running answer lacks one token, left for a last step that is too short to be seen.
 */
export function batchOf(promptTokens: number, parts: number): number {
  const least = Math.ceil(promptTokens / parts);
  const power = 2 ** Math.ceil(Math.log2(least));
  // One step shows only that all of it had room.
  if (parts === 1) return power > promptTokens ? power : 2 * power;
  return promptTokens / power > parts - 1 ? power : least;
}

async function watchedSteps(
  engine: MeasuredEngine,
  prompts: (tokens: number) => number[],
  long: number,
  signal: AbortSignal,
): Promise<number | undefined> {
  const times: number[] = [];
  const { promise: isUnderWay, resolve } = Promise.withResolvers<void>();
  const watched = timedAnswer(engine, prompts(CROWD_PROMPT_TOKENS), WATCHED_TOKENS, signal, () => {
    times.push(performance.now());
    if (times.length === BEFORE_TOKENS) resolve();
  });
  await Promise.race([isUnderWay, watched]);
  const { askedMillis, firstMillis } = await timedAnswer(engine, prompts(long), 1, signal);
  await watched;
  return longerPauses(times, askedMillis, askedMillis + firstMillis);
}

/**
 * In how many steps a prompt was computed that was sent and answered at these times, by when tokens of another answer
 * came; undefined where its steps are not longer than others by far, or the other answer had ended before.
 */
export function longerPauses(times: readonly number[], sentMillis: number, firstMillis: number): number | undefined {
  const gaps = times.slice(1).map((at, i) => ({ begin: times[i]!, end: at, millis: at - times[i]! }));
  const usual = median(gaps.filter(({ end }) => end < sentMillis).map(({ millis }) => millis));
  const last = times.at(-1) ?? 0;
  if (!(usual > 0) || last < firstMillis) return undefined;
  // The last part of the prompt and a token of the answer are of one step.
  const during = gaps.filter(({ end }) => end > sentMillis && end < firstMillis + usual).map(({ millis }) => millis);
  const longest = Math.max(...during);
  if (!(longest > LONGER * usual)) return undefined;
  return during.filter((millis) => millis > Math.sqrt(usual * longest)).length;
}
