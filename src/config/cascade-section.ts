import * as z from "zod";
import { MIB } from "./schema-value.ts";

const NAME_CHARS_MAX = 256;
const TOKENS_MAX = 1_000_000;
const name = () => z.string().min(1).max(NAME_CHARS_MAX);

const step = z.strictObject({
  model: name().describe("Model, as engines serve it."),
  logprobMin: z
    .number()
    .max(0)
    .min(-1000)
    .optional()
    .describe(
      "Least mean log-probability (natural logarithm) of an answer's tokens with which it is kept; below it the next model is asked. Of all steps but the last.",
    ),
});

const chain = z.strictObject({
  name: name().describe("What clients ask for as their model; a name of its own, or the first step's."),
  steps: z
    .array(step)
    .min(2)
    .max(8)
    .refine((steps) => steps.every(({ logprobMin }, i) => (logprobMin === undefined) === (i === steps.length - 1)), {
      message: "logprobMin with every step but the last",
    })
    .refine((steps) => new Set(steps.map(({ model }) => model)).size === steps.length, {
      message: "each model once",
    })
    .describe("Models, the smallest first."),
  judgedTokens: z
    .int()
    .min(1)
    .max(TOKENS_MAX)
    .optional()
    .describe(
      "Tokens of an answer after which it is judged; unset: all. A stream is held back until then, an answer in one piece always to its end.",
    ),
});

/** Small models first, and larger ones where these are not sure. */
export const cascade = z.strictObject({
  chains: z
    .array(chain)
    .max(64)
    .default([])
    .refine((chains) => new Set(chains.map((one) => one.name)).size === chains.length, { message: "each name once" })
    .describe(
      "Model names for which clients get the answer of the first model in a list that is confident of it; none by default.",
    ),
  escalationsInFlightMax: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(256)
    .describe(
      "Most requests under way at a later model than their first; beyond it answers are kept however low their confidence.",
    ),
  heldBytesMax: z
    .int()
    .min(65_536)
    .max(4096 * MIB)
    .default(64 * MIB)
    .describe(
      "Most bytes of streams held back to be judged; beyond it streams pass unjudged. limits.holdBytesMax bounds each stream.",
    ),
});
