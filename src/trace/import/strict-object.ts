import * as z from "zod";

/** An object without unknown keys; the error for one lists the accepted ones. */
export function strict<S extends z.core.$ZodLooseShape>(shape: S): z.ZodObject<S, z.core.$strict> {
  const accepted = Object.keys(shape).join(", ");
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === "unrecognized_keys" ? `unknown key ${issue.keys.join(", ")}; accepted: ${accepted}` : undefined,
  });
}
