import * as z from "zod";
import { INLINE_PROFILE_SCHEMA, PROFILE_NAME_CHARS_MAX } from "./profile-schema.ts";
import { MILLIS_PER_DAY, millis } from "./schema-value.ts";

/** Profiles that a configuration may hold; each sees every request. */
const PROFILES_MAX = 64;

const name = z
  .string()
  .min(1)
  .max(PROFILE_NAME_CHARS_MAX)
  .refine((text) => text !== "__proto__");

export const profiles = z
  .record(name, INLINE_PROFILE_SCHEMA)
  .refine((value) => Object.keys(value).length <= PROFILES_MAX, { message: `at most ${PROFILES_MAX} profiles` })
  .default({})
  .describe("Profiles by name, written as in a profile file without its name; they take precedence over shipped ones.");

export const policy = z.strictObject({
  watchMillis: millis(0, MILLIS_PER_DAY)
    .default(1000)
    .describe(
      "Time between two checks of the configuration file and the profile files that it names; 0 to follow no changes.",
    ),
  directory: z
    .string()
    .min(1)
    .optional()
    .describe(
      "Folder in which policies, rollouts and the key of block hashes are kept, so that they survive a restart; unset: nothing is kept.",
    ),
  historyMax: z.int().min(1).max(10_000).default(64).describe("Versions kept for a rollback."),
  documentBytesMax: z
    .int()
    .min(1024)
    .max(4_194_304)
    .default(262_144)
    .describe("Largest size of one policy, as it is sent and as it is kept."),
});
