import type { Route, Routes } from "../http/route.ts";
import type { IncomingMessage, ServerResponse } from "node:http";
import { ERRORS, errorBody, errorHeaders, refusal } from "../http/errors.ts";

/** What an inference request names: its route, and what the endpoint is asked for. */
export interface RequestTarget {
  readonly route: Route;
  /** Path and query as the endpoint gets them. */
  readonly path: string;
}

/** Reads request targets; clients send the same ones over and over. */
export class RequestTargets {
  readonly #routes: Routes;
  #target = "";
  #read: RequestTarget | undefined;

  constructor(routes: Routes) {
    this.#routes = routes;
  }

  /** Undefined where no route has this target. */
  of(target: string): RequestTarget | undefined {
    if (target !== this.#target) {
      this.#read = this.#parse(target);
      this.#target = target;
    }
    return this.#read;
  }

  #parse(given: string): RequestTarget | undefined {
    const target = given.startsWith("/") ? given : given.replace(ABSOLUTE, "");
    const query = target.indexOf("?");
    const path = withoutSlash(query < 0 ? target : target.slice(0, query));
    const route = this.#routes.of(path);
    return route && { route, path: query < 0 ? path : path + target.slice(query) };
  }
}

/** What a proxy is asked with: the target with its scheme and host before it (RFC 9112 3.2.2). */
const ABSOLUTE = /^https?:\/\/[^/?]*/i;

function withoutSlash(path: string): string {
  return path.endsWith("/") ? path.slice(0, -1) : path;
}

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
