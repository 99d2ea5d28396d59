import * as z from "zod";

const plugin = {
  plugin: z.string().min(1),
  parameters: z.record(z.string(), z.union([z.number(), z.string(), z.boolean()])).default({}),
};

/** A profile file: config/profiles/*.yaml. A section that is written replaces the one of the extended profile whole. */
export const PROFILE_FILE_SCHEMA = z.strictObject({
  name: z.string().min(1).max(128),
  summary: z.string().optional(),
  /** Where the policy comes from. */
  source: z.string().optional(),
  /** How often the router that the policy comes from reads engines' gauges by default, and the source of that. */
  signals: z.strictObject({ intervalMillis: z.number().min(0.1).max(1e7), source: z.string().min(1) }).optional(),
  /** Name of a profile beside this file, or a path. */
  extends: z.string().min(1).optional(),
  filters: z.array(z.strictObject(plugin)).optional(),
  scorers: z
    .array(z.strictObject({ ...plugin, weight: z.number().meta({ expected: "a number above 0" }).gt(0) }))
    .optional(),
  picker: z.strictObject(plugin).optional(),
});

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
