import * as z from "zod";

const plugin = {
  plugin: z.string().min(1).describe("Plugin by name; gnomon profiles lists them."),
  parameters: z
    .record(z.string(), z.union([z.number(), z.string(), z.boolean()]))
    .default({})
    .describe("Its parameters; those left out have their defaults."),
};

export const PROFILE_NAME_CHARS_MAX = 128;

/** A section that is written replaces the one of the extended profile whole. */
const body = {
  summary: z.string().optional().describe("What it does, in a sentence."),
  source: z.string().optional().describe("Where the policy comes from."),
  extends: z
    .string()
    .min(1)
    .optional()
    .describe("Name of a profile beside the file, or of a shipped one, or a path; sections left out are as there."),
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
  picker: z.strictObject(plugin).optional().describe("Who chooses among the scored."),
};

/** A profile file: config/profiles/*.yaml. */
export const PROFILE_FILE_SCHEMA = z.strictObject({
  name: z.string().min(1).max(PROFILE_NAME_CHARS_MAX),
  /** How often the router that the policy comes from reads engines' gauges by default, and the source of that. */
  signals: z.strictObject({ intervalMillis: z.number().min(0.1).max(1e7), source: z.string().min(1) }).optional(),
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
