import { type Refusal, refusal } from "./errors.ts";

/** Of a web framework's own refusal, which is `{"detail":"Not Found"}`. */
export const UNSERVED_BYTES_MAX = 4_096;

/** An engine's web framework answers these where there is no such path, or not by this method. */
export const UNSERVED: ReadonlySet<number> = new Set([404, 405]);

/** In place of the framework's own refusal, with a status of UNSERVED; undefined where the body is another one. */
export function unservedRefusal(status: number, body: Buffer): Refusal | undefined {
  const detail = detailOf(body);
  if (detail === undefined) return undefined;
  const reason = status === 404 ? "unknown-path" : "wrong-method";
  return refusal(reason, `The engines of this model do not serve this path (${detail}).`);
}

/** The framework's words; undefined where the body is another one. */
function detailOf(body: Buffer): string | undefined {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    if (typeof value !== "object" || value === null || Object.keys(value).join() !== "detail") return undefined;
    const { detail } = value as { readonly detail: unknown };
    return typeof detail === "string" ? detail : undefined;
  } catch {
    return undefined;
  }
}
