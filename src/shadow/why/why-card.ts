import { MICROS_PER_MILLI } from "#core/base/units.ts";
import type { WhyCard } from "#page/status/why-card.ts";
import type { WhyAnswer } from "./why-answer.ts";
import { lossMeaning, meaningOf, slowSentence, tokenSentence } from "./why-words.ts";

/** What the status page shows of an explanation. */
export function whyCard(answer: WhyAnswer, at: number): WhyCard {
  const { slow, tokens } = answer;
  return {
    at,
    requests: slow.requests,
    inForce: answer.inForce,
    against: answer.against,
    sentences: [slowSentence(answer), tokenSentence(answer)],
    parts: slow.parts.map(({ part, micros, interval }) => ({
      part,
      millis: micros / MICROS_PER_MILLI,
      ...(interval && { low: interval.low / MICROS_PER_MILLI, high: interval.high / MICROS_PER_MILLI }),
      meaning: meaningOf(part, answer),
    })),
    tokens: [
      { what: "new", tokens: tokens.newTokens, meaning: "nobody had sent them before" },
      { what: "hit", tokens: tokens.hit, meaning: "as engines reported" },
      ...tokens.losses.map((one) => ({ what: one.loss, tokens: one.tokens, meaning: lossMeaning(one) })),
    ],
  };
}
