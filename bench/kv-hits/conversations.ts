import type { Random } from "#core/base/random.ts";

const WORDS =
  "river stone lamp garden window copper meadow signal harbor engine paper cloud orchard mirror valley ladder".split(
    " ",
  );

export interface ConversationOptions {
  readonly gateway: string;
  readonly model: string;
  /** Conversations that go on beside each other. */
  readonly sideBySide: number;
  readonly turnsMax: number;
  readonly systemWords: number;
  readonly turnWords: number;
  readonly answerTokens: number;
  readonly seconds: number;
}

/**
 * Chats of several turns over a few system prompts, one turn after another, through a gateway. Returns turns and
 * failures.
 */
export async function converse(
  random: Random,
  options: ConversationOptions,
): Promise<{ turns: number; failed: number }> {
  const until = performance.now() + 1_000 * options.seconds;
  const systems = Array.from({ length: 4 }, () => words(random, options.systemWords));
  const counts = { turns: 0, failed: 0 };
  const one = async (): Promise<void> => {
    while (performance.now() < until) {
      const messages: object[] = [{ role: "system", content: systems[random.below(systems.length)] }];
      const turns = 1 + random.below(options.turnsMax);
      for (let turn = 0; turn < turns && performance.now() < until; turn++) {
        messages.push({ role: "user", content: words(random, options.turnWords) });
        const content = await ask(options, messages);
        if (content === undefined) {
          counts.failed++;
          break;
        }
        counts.turns++;
        messages.push({ role: "assistant", content });
      }
    }
  };
  await Promise.all(Array.from({ length: options.sideBySide }, one));
  return counts;
}

async function ask(
  { gateway, model, answerTokens }: ConversationOptions,
  messages: readonly object[],
): Promise<string | undefined> {
  const body = JSON.stringify({ model, messages, max_tokens: answerTokens, temperature: 0, ignore_eos: true });
  try {
    const answer = await fetch(`${gateway}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    if (!answer.ok) return undefined;
    const { choices } = (await answer.json()) as { choices: { message: { content: string } }[] };
    return choices[0]?.message.content;
  } catch {
    return undefined;
  }
}

function words(random: Random, count: number): string {
  return Array.from({ length: count }, () => `${WORDS[random.below(WORDS.length)]} ${random.below(1_000)}`).join(" ");
}
