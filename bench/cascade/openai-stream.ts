import type OpenAI from "openai";

/** A stream as the openai client has it; times in milliseconds from its request. */
export interface StreamSeen {
  readonly model: string;
  readonly text: string;
  readonly ttftMillis: number;
  readonly e2eMillis: number;
  /** Mean log-probability of its tokens, where they were asked for. */
  readonly meanLogprob: number | undefined;
  /** What is wrong with it; "" where it is one answer of one model with one end. */
  readonly flaw: string;
}

/** Asks for a stream of at most so many tokens; `more` goes into the body. */
export async function openaiStream(
  client: OpenAI,
  model: string,
  content: string,
  tokens: number,
  more: { readonly logprobs?: boolean; readonly logit_bias?: Record<string, number> } = {},
): Promise<StreamSeen> {
  const begun = performance.now();
  const [ids, models] = [new Set<string>(), new Set<string>()];
  const scores: number[] = [];
  let [text, ends, first] = ["", 0, NaN];
  try {
    const stream = await client.chat.completions.create({
      model,
      messages: [{ role: "user", content }],
      stream: true,
      temperature: 0,
      max_completion_tokens: tokens,
      ...more,
    });
    for await (const chunk of stream) {
      ids.add(chunk.id);
      models.add(chunk.model);
      const [choice] = chunk.choices;
      const delta = choice?.delta.content ?? "";
      if (delta !== "" && text === "") first = performance.now() - begun;
      text += delta;
      if ((choice?.finish_reason ?? null) !== null) ends++;
      for (const { logprob } of choice?.logprobs?.content ?? []) scores.push(logprob);
    }
  } catch (error) {
    return { model, text, ttftMillis: first, e2eMillis: NaN, meanLogprob: undefined, flaw: String(error).slice(0, 80) };
  }
  const whole = ids.size === 1 && models.size === 1 && ends === 1;
  const shown = scores.length > 0 && more.logprobs !== true ? "log-probabilities that nobody asked for" : "";
  return {
    model: [...models].join("+"),
    text,
    ttftMillis: first,
    e2eMillis: performance.now() - begun,
    meanLogprob: scores.length === 0 ? undefined : scores.reduce((sum, one) => sum + one, 0) / scores.length,
    flaw: whole ? shown : `${ids.size} ids, ${models.size} models, ${ends} ends`,
  };
}
