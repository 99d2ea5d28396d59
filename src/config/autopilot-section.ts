import * as z from "zod";
import { OBJECTIVES } from "#core/objective-names.ts";
import { MILLIS_PER_DAY, millis } from "./schema-value.ts";

/** The shadow searches a better policy for the latest traffic, and proposes a rollout of it. */
export const autopilot = z
  .strictObject({
    enabled: z
      .boolean()
      .default(false)
      .describe("The shadow searches a better policy for the latest traffic; needs shadow.enabled."),
    start: z
      .enum(["ask", "alone"])
      .default("ask")
      .describe("ask: a person starts the rollout of a proposal. alone: one that is surely better starts by itself."),
    intervalMillis: millis(1000, 7 * MILLIS_PER_DAY)
      .default(3_600_000)
      .describe("Time between two searches."),
    objective: z.enum(OBJECTIVES).default("e2e-mean").describe("What is to be better; goodput and cost need targets."),
    sloTtftMillis: z.number().gt(0).max(1e9).optional().describe("Time to the first token that requests are promised."),
    sloTpotMillis: z.number().gt(0).max(1e9).optional().describe("Time per token after it that they are promised."),
    profiles: z
      .array(z.string().min(1))
      .max(64)
      .default([])
      .describe("Profiles that a search begins with; none: all that come with gnomon."),
    trialsMax: z
      .int()
      .min(4)
      .max(100_000)
      .default(60)
      .describe("Simulations of one search; one of a sixth of the traffic counts a sixth."),
    budgetMillis: millis(100, MILLIS_PER_DAY)
      .default(900_000)
      .describe("Time that one search may take, within shadow.cpuShareMax of a core."),
    gainMin: z
      .number()
      .gt(0)
      .max(1)
      .default(0.03)
      .describe("A smaller gain is not proposed; one whose interval begins below it does not start by itself."),
    proposalsMax: z.int().min(1).max(64).default(8).describe("Proposals that are kept, the newest."),
    startsPerDayMax: z.int().min(0).max(100).default(1).describe("Rollouts that start by themselves in a day."),
    windowMillis: millis(1000, 7 * MILLIS_PER_DAY)
      .default(600_000)
      .describe("Length of a window of the rollout, a switchback."),
  })
  .refine(
    ({ objective, sloTtftMillis, sloTpotMillis }) =>
      (objective !== "goodput" && objective !== "cost") || (sloTtftMillis ?? sloTpotMillis) !== undefined,
    { path: ["objective"], message: "one without targets, or sloTtftMillis or sloTpotMillis beside it" },
  );
