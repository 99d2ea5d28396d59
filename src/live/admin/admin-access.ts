import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

import { givenKeys } from "../http/client-auth.ts";

/** What a request states of itself that matters for the status pages. */
export interface AdminCaller {
  readonly headers: IncomingHttpHeaders;
  /** Of the socket; no header can change it. */
  readonly remoteAddress: string | undefined;
}

export type AdminVerdict = "allowed" | "unauthorized" | "forbidden";

/**
 * Who may see the status pages. With tokens: who sends one of them. Without any: only peers on a loopback address, and
 * of those only requests that were meant for this machine and came from nobody else. A proxy on this machine, which
 * makes everybody a loopback peer, gives itself away by its headers; a page in a browser here whose name was bound anew
 * to 127.0.0.1, by its Host.
 */
export function adminAccess(...tokens: readonly (string | undefined)[]): (caller: AdminCaller) => AdminVerdict {
  const expected = tokens.filter((token) => token !== undefined).map(digest);
  return ({ headers, remoteAddress }) => {
    if (expected.length === 0) {
      const local = isLoopback(remoteAddress) && !isForwarded(headers) && isLoopbackHost(headers.host);
      return local ? "allowed" : "forbidden";
    }
    const apiKey = headers["x-api-key"];
    const sent = givenKeys(headers.authorization, typeof apiKey === "string" ? apiKey : undefined);
    const given = sent.map(digest);
    return given.some((key) => expected.some((one) => timingSafeEqual(key, one))) ? "allowed" : "unauthorized";
  };
}

/** Who may change something: who sends the admin token; nobody where there is none. */
export function tokenAccess(token: string | undefined): (caller: AdminCaller) => AdminVerdict {
  return token === undefined ? () => "forbidden" : adminAccess(token);
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function isLoopback(address: string | undefined): boolean {
  return address === "::1" || /^(?:::ffff:)?127(?:\.\d{1,3}){3}$/.test(address ?? "");
}

const FORWARDING_HEADERS = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"];

function isForwarded(headers: IncomingHttpHeaders): boolean {
  return FORWARDING_HEADERS.some((name) => headers[name] !== undefined);
}

function isLoopbackHost(host: string | undefined): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d+)?$/i.test(host ?? "");
}
