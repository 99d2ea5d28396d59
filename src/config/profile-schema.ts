import * as z from "zod";
import { COLOCATE_BELOW_TOKENS, ROLES_DEFAULT } from "#core/profile/profile-stages.ts";
import { HANDOFFS, UNLABELLED } from "#core/plugin/spec.ts";
import { SIGNALS_SCHEMA } from "./profile-signals.ts";

const plugin = {
  plugin: z.string().min(1).describe("Plugin by name; gnomon profiles lists them."),
  parameters: z
    .record(z.string(), z.union([z.number(), z.string(), z.boolean()]))
    .default({})
    .describe("Its parameters; those left out have their defaults."),
};

export const PROFILE_NAME_CHARS_MAX = 128;

const chooser = {
  filters: z.array(z.strictObject(plugin)).optional().describe("Guards, in order."),
  scorers: z
    .array(
      z.strictObject({
        ...plugin,
        weight: z.number().meta({ expected: "a number above 0" }).gt(0).describe("Weight; only ratios matter."),
      }),
    )
    .optional()
    .describe("Weighted scorers, each at most once."),
};
const picker = z.strictObject(plugin);
const tokens = z.number().int().min(0);

/** Two phases of one request; `gnomon profiles` and the README of core/path/prefill explain them. */
const disaggregation = z.strictObject({
  prefill: z.strictObject({ ...chooser, picker }).describe("Chooses the endpoint that computes the prompt."),
  colocateBelowTokens: tokens
    .default(COLOCATE_BELOW_TOKENS)
    .describe("With fewer prompt tokens than this outside its cache, the endpoint that answers computes them itself."),
  promptTokensMin: tokens.default(0).describe("A shorter prompt stays at one endpoint, whatever is cached."),
  handoff: z
    .enum(HANDOFFS)
    .default("prefill-first")
    .describe("prefill-first: one endpoint after the other, as vLLM; together: both at once, as SGLang."),
  roles: z
    .strictObject({
      label: z.string().min(1).default(ROLES_DEFAULT.label).describe("Label of endpoints that has their role."),
      prefill: z
        .array(z.string())
        .default([...ROLES_DEFAULT.prefill])
        .describe("Its values for those that compute prompts."),
      decode: z
        .array(z.string())
        .default([...ROLES_DEFAULT.decode])
        .describe("Its values for those that answer."),
      unlabelled: z.enum(UNLABELLED).default(ROLES_DEFAULT.unlabelled).describe("What endpoints without it do."),
      pairLabel: z
        .string()
        .default("")
        .describe("Label of which both endpoints must have the same value; empty for any two."),
    })
    .default({
      ...ROLES_DEFAULT,
      prefill: [...ROLES_DEFAULT.prefill],
      decode: [...ROLES_DEFAULT.decode],
    })
    .describe("Which endpoints compute prompts, and which answer."),
});

/** A section that is written replaces the one of the extended profile whole. */
const body = {
  summary: z.string().optional().describe("What it does, in a sentence."),
  source: z.string().optional().describe("Where the policy comes from."),
  signals: SIGNALS_SCHEMA.optional().describe("How engines' gauges reach the router that it is made for."),
  extends: z
    .string()
    .min(1)
    .optional()
    .describe("Name of a profile beside the file, or of a shipped one, or a path; sections left out are as there."),
  ...chooser,
  picker: picker.optional().describe("Who chooses among the scored."),
  disaggregation: disaggregation
    .optional()
    .describe("Prompts may be computed at another endpoint than the one that answers."),
};

/** A profile file: config/profiles/*.yaml. */
export const PROFILE_FILE_SCHEMA = z.strictObject({
  name: z.string().min(1).max(PROFILE_NAME_CHARS_MAX),
  ...body,
});

/** A profile in the configuration itself, which its key names. */
export const INLINE_PROFILE_SCHEMA = z.strictObject(body);

export type InlineProfile = z.infer<typeof INLINE_PROFILE_SCHEMA>;
export type ProfileFile = z.infer<typeof PROFILE_FILE_SCHEMA>;

const scorer = z.strictObject({
  name: z.string().min(1),
  weight: z.number().meta({ expected: "a number above 0" }).gt(0),
});

/** The YAML of --policy-config, as BLIS has it. */
export const POLICY_CONFIG_SCHEMA = z.strictObject({
  "routing-policy": z.string().min(1).default("weighted"),
  "routing-scorers": z.array(scorer).min(1).optional(),
});
