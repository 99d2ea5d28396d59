import * as z from "zod";

/** Logs on stderr, and the access log. */
export const log = z.strictObject({
  level: z
    .enum(["trace", "debug", "info", "warn", "error", "silent"])
    .default("info")
    .describe("Lowest level that is logged, to stderr as JSON lines."),
  access: z
    .enum(["off", "stdout"])
    .default("off")
    .describe("One JSON line per inference request, whatever the level; never prompts or keys."),
});
