import type { IncomingMessage, ServerResponse } from "node:http";
import { ERRORS, errorBody, errorHeaders, refusal } from "../http/errors.ts";

const MALFORMED_TARGET = refusal("bad-request", "The request's host or target is malformed.");

/** The answer to a target or a host that the HTTP framework cannot read. */
export function malformedTarget(sendsOwnHeaders: boolean): Response {
  const body = errorBody(MALFORMED_TARGET);
  const flat = errorHeaders(MALFORMED_TARGET, Buffer.byteLength(body), sendsOwnHeaders);
  const headers = new Headers();
  for (let i = 0; i < flat.length; i += 2) headers.append(flat[i]!, flat[i + 1]!);
  return new Response(body, { status: ERRORS["bad-request"].status, headers });
}

/** HTTP/1.1 requires a host (RFC 9112 3.2). */
export function refuseHost(outgoing: ServerResponse, sendsOwnHeaders: boolean): void {
  const body = errorBody(MALFORMED_TARGET);
  const own = errorHeaders(MALFORMED_TARGET, Buffer.byteLength(body), sendsOwnHeaders);
  outgoing.writeHead(ERRORS["bad-request"].status, [...own, "connection", "close"]).end(body);
}

/** The one host that a request names; undefined where it names none, or several. */
export function hostOf(rawHeaders: readonly string[]): string | undefined {
  let host: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (name.length !== 4 || name.toLowerCase() !== "host") continue;
    if (host !== undefined) return undefined;
    host = rawHeaders[i + 1]!;
  }
  return host;
}

/** HTTP/1.1 requires one host, and nothing allows two (RFC 9112 3.2): who reads which of them is anybody's guess. */
export function isHostClear({ headers, rawHeaders, httpVersionMinor }: IncomingMessage): boolean {
  return hostOf(rawHeaders) !== undefined || (headers.host === undefined && httpVersionMinor === 0);
}
