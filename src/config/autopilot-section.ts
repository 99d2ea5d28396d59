import * as z from "zod";
import { OBJECTIVES } from "#core/objective-names.ts";
import { MILLIS_PER_DAY, millis } from "./schema-value.ts";

/** The shadow searches a better policy for the latest traffic, and proposes a rollout of it. */
export const autopilot = z
  .strictObject({
    enabled: z
      .boolean()
      .default(false)
      .describe("Search for a better policy for the latest traffic; needs shadow.enabled."),
    start: z
      .enum(["ask", "alone"])
      .default("ask")
      .describe(
        "ask: a person starts the rollout of a proposal. alone: the rollout of one that is surely better starts automatically.",
      ),
    intervalMillis: millis(1000, 7 * MILLIS_PER_DAY)
      .default(3_600_000)
      .describe("Time between two searches."),
    objective: z.enum(OBJECTIVES).default("e2e-mean").describe("What to improve; goodput and cost need targets."),
    sloTtftMillis: z.number().gt(0).max(1e9).optional().describe("Target for the time to first token."),
    sloTpotMillis: z.number().gt(0).max(1e9).optional().describe("Target for the time per output token."),
    profiles: z
      .array(z.string().min(1))
      .max(64)
      .default([])
      .describe("Profiles that a search starts from; none: all that come with gnomon."),
    trialsMax: z
      .int()
      .min(4)
      .max(100_000)
      .default(60)
      .describe("Most simulations of one search; one of a sixth of the traffic counts as a sixth."),
    budgetMillis: millis(100, MILLIS_PER_DAY)
      .default(900_000)
      .describe("Longest time of one search, within shadow.cpuShareMax of a core."),
    gainMin: z
      .number()
      .gt(0)
      .max(1)
      .default(0.03)
      .describe(
        "Smallest gain that is proposed; a rollout starts automatically only if the gain's whole interval is above it.",
      ),
    proposalsMax: z.int().min(1).max(64).default(8).describe("Newest proposals that are kept."),
    startsPerDayMax: z.int().min(0).max(100).default(1).describe("Most rollouts that start automatically in a day."),
    windowMillis: millis(1000, 7 * MILLIS_PER_DAY)
      .default(600_000)
      .describe("Length of a window of the rollout, a switchback."),
  })
  .refine(
    ({ objective, sloTtftMillis, sloTpotMillis }) =>
      (objective !== "goodput" && objective !== "cost") || (sloTtftMillis ?? sloTpotMillis) !== undefined,
    { path: ["objective"], message: "one without targets, or sloTtftMillis or sloTpotMillis beside it" },
  );
