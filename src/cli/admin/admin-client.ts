import { readFileSync } from "node:fs";
import { ConfigError } from "#config/config-error.ts";
import { CommandFailure } from "#serve/process/command-failure.ts";

/** Where the gateway is, and how to be let in. */
export interface GatewayFlags {
  readonly url: string;
  readonly tokenEnv: string;
  readonly tokenFile?: string;
}

export interface AdminCall {
  readonly method: "GET" | "PUT" | "PATCH" | "POST" | "DELETE";
  /** Below /gnomon/admin, with its query. */
  readonly path: string;
  /** JSON or YAML. */
  readonly body?: string;
  readonly by?: string;
}

const CALL_MILLIS_MAX = 30_000;

/**
 * Calls the admin API of a running gateway and returns what it answers. Throws ConfigError with the problems where a
 * change was refused, CommandFailure where the gateway cannot be reached or lets nobody in.
 */
export async function callAdmin(flags: GatewayFlags, { method, path, body, by }: AdminCall): Promise<unknown> {
  const token = tokenOf(flags);
  const url = new URL(`/gnomon/admin${path}`, urlOf(flags));
  const headers = { authorization: `Bearer ${token}`, ...(by !== undefined && by !== "" && { "x-gnomon-by": by }) };
  const signal = AbortSignal.timeout(CALL_MILLIS_MAX);
  const silent = (error: unknown): never => {
    throw new CommandFailure(`${url.origin} does not answer: ${reasonOf(error)}`);
  };
  const answer = await fetch(url, { method, headers, signal, ...(body !== undefined && { body }) }).catch(silent);
  const text = await answer.text().catch(silent);
  const reply = jsonOf(text);
  if (answer.ok && reply !== undefined) return reply;
  const problems = reply === undefined ? [] : problemsOf(reply);
  if (problems.length > 0 && [400, 404, 409, 413].includes(answer.status)) throw new ConfigError(problems);
  throw new CommandFailure(
    `${url.origin} answered ${answer.status}: ${problems.join("; ") || text.slice(0, TEXT_SHOWN_MAX)}`,
  );
}

/** What holds and is not kept yet is named, a line each. */
export function warnUnkept(unkept: readonly string[] = []): void {
  for (const line of unkept)
    process.stderr.write(`warning: ${line}; it holds here, and is tried again until it is kept\n`);
}

const TEXT_SHOWN_MAX = 200;

function tokenOf({ tokenEnv, tokenFile }: GatewayFlags): string {
  const token = tokenFile === undefined ? process.env[tokenEnv] : readFileSync(tokenFile, "utf8").trim();
  if (token !== undefined && token !== "") return token;
  throw new ConfigError([
    tokenFile === undefined
      ? `--token-env: expected a variable with the gateway's admin token, got no ${tokenEnv} in the environment`
      : `--token-file: expected a file with the gateway's admin token, got an empty one, ${tokenFile}`,
  ]);
}

function urlOf({ url }: GatewayFlags): URL {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed?.protocol === "http:" || parsed?.protocol === "https:") return parsed;
  throw new ConfigError([`--url: expected a gateway such as http://127.0.0.1:8081, got ${JSON.stringify(url)}`]);
}

function jsonOf(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function problemsOf(reply: object): string[] {
  if ("problems" in reply && Array.isArray(reply.problems)) return reply.problems.map(String);
  const error = "error" in reply && typeof reply.error === "object" ? reply.error : null;
  return error !== null && "message" in error ? [String(error.message)] : [];
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error && cause.message !== "" ? cause.message : error.message;
}
