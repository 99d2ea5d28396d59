import type { HttpBindings } from "@hono/node-server";
import type { Context } from "hono";
import { yamlValueOf } from "#trace/yaml-text.ts";

const BY_CHARS_MAX = 128;

/** Who asks, as they say; else the address that asks. */
export function callerOf(c: Context<{ Bindings: HttpBindings }>): string {
  const by = c.req.header("x-gnomon-by") ?? c.env.incoming.socket.remoteAddress ?? "";
  return by.replaceAll(/[^ -~]/g, "?").slice(0, BY_CHARS_MAX);
}

/** JSON, or YAML, which is more of the same. */
export function bodyOf(text: string): { ok: true; value: unknown } | { ok: false; message: string } {
  const read = yamlValueOf(text);
  return read.ok ? read : { ok: false, message: `body: expected JSON or YAML, got ${read.message}` };
}

/** What was ordered holds: 200 where it is kept, 202 where it is not yet. */
export function orderAnswer(c: Pick<Context, "json">, outcome: object, unkept: readonly string[]): Response {
  return unkept.length === 0 ? c.json(outcome) : c.json({ ...outcome, unkept }, 202);
}

const TYPES = {
  400: "BadRequestError",
  401: "AuthenticationError",
  403: "PermissionDeniedError",
  404: "NotFoundError",
  409: "ConflictError",
  413: "RequestTooLargeError",
} as const;

/** An error as the rest of the gateway answers them, and its lines. */
export function problem(
  c: Pick<Context, "json">,
  code: keyof typeof TYPES,
  problems: readonly string[],
  version?: number,
): Response {
  const error = { message: problems.join("; "), type: TYPES[code], param: null, code };
  return c.json({ error, problems, ...(version !== undefined && { version }) }, code);
}
