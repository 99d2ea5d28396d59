import * as z from "zod";
import { environmentName } from "./schema-value.ts";

/** Where the gateway and the commands that administer it find the admin token, unless they are given another place. */
export const ADMIN_TOKEN_VARIABLE = "GNOMON_ADMIN_TOKEN";

export const admin = z
  .strictObject({
    tokenEnv: environmentName()
      .optional()
      .describe(
        `Variable that holds the bearer token of /gnomon/*; ${ADMIN_TOKEN_VARIABLE} if that is set and neither this nor tokenFile is. Without a token they answer on loopback only; /gnomon/admin/* and engines' administration not at all.`,
      ),
    tokenFile: z.string().min(1).optional().describe("File that holds it, such as a mounted secret; read at start."),
    statusTokenEnv: environmentName()
      .optional()
      .describe(
        "Variable that holds a second bearer token, for read-only access: it opens the pages of /gnomon/*, but nothing below /gnomon/admin/.",
      ),
    statusTokenFile: z.string().min(1).optional().describe("File that holds the second token; read at start."),
    decisionsKept: z.int().min(0).max(100_000).default(256).describe("Decisions that /gnomon/decisions keeps."),
  })
  .refine(({ tokenEnv, tokenFile }) => tokenEnv === undefined || tokenFile === undefined, {
    path: ["tokenFile"],
    message: "tokenEnv or tokenFile, and not both",
  })
  .refine(({ statusTokenEnv, statusTokenFile }) => statusTokenEnv === undefined || statusTokenFile === undefined, {
    path: ["statusTokenFile"],
    message: "statusTokenEnv or statusTokenFile, and not both",
  });
