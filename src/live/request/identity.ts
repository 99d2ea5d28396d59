import { createHmac } from "node:crypto";

import { LRUCache } from "lru-cache";

import type { Fields } from "../fields.ts";
import type { RequestHeaders } from "./request-headers.ts";

/** Where the gateway looks for who asks. Header names in lower case, first match wins. */
export interface IdentityOptions {
  readonly tenantHeaders: readonly string[];
  readonly sessionHeaders: readonly string[];
  /** Header with which a client may select a profile; undefined lets none. */
  readonly profileHeader: string | undefined;
  /** Header with the service class. */
  readonly sloHeader: string | undefined;
  /** Keys the short ids that stand for API keys and users, so that nobody can look them up. */
  readonly secret: string;
}

/** Who asks, and for which conversation. Safe to write down: keys and users are ids here. */
export interface Identity {
  readonly tenant: string;
  readonly session: string;
  readonly profile: string;
  readonly sloClass: string;
}

const IDS_REMEMBERED = 4_096;

/** Reads tenant, session, profile and service class of a request. */
export class Identifier {
  readonly #options: IdentityOptions;
  readonly #keyIds = new LRUCache<string, string>({ max: IDS_REMEMBERED });

  constructor(options: IdentityOptions) {
    this.#options = options;
  }

  identify(headers: RequestHeaders, fields: Fields | undefined): Identity {
    const { tenantHeaders, sessionHeaders, profileHeader, sloHeader } = this.#options;
    return {
      tenant: firstHeader(headers, tenantHeaders) || this.#keyOf(headers) || this.#user(fields),
      session: firstHeader(headers, sessionHeaders) || this.#sessionOf(fields),
      profile: profileHeader === undefined ? "" : bounded(headers.get(profileHeader)),
      sloClass: sloHeader === undefined ? "" : bounded(headers.get(sloHeader)),
    };
  }

  #keyOf(headers: RequestHeaders): string {
    const key = headers.get("authorization") || headers.get("x-api-key");
    if (key === "") return "";
    const known = this.#keyIds.get(key);
    if (known !== undefined) return known;
    const id = this.#id("key", key);
    this.#keyIds.set(key, id);
    return id;
  }

  #user(fields: Fields | undefined): string {
    const user = fields?.["user"];
    return typeof user === "string" && user !== "" ? this.#id("user", user) : "";
  }

  #sessionOf(fields: Fields | undefined): string {
    if (fields === undefined) return "";
    for (const name of SESSION_FIELDS) {
      const value = fields[name];
      if (typeof value === "string" && value !== "") return bounded(value);
    }
    return this.#user(fields);
  }

  /** A short id in place of a secret or a name. */
  #id(kind: string, value: string): string {
    return `${kind}-${createHmac("sha256", this.#options.secret).update(value).digest("hex").slice(0, 12)}`;
  }
}

/** vLLM's name for a conversation, then OpenAI's hint that requests share a prefix. */
const SESSION_FIELDS = ["session_id", "prompt_cache_key", "conversation_id"] as const;

/** The client's request id where it is fit for logs and headers; else "". */
export function givenRequestId(headers: RequestHeaders): string {
  const given = headers.get("x-request-id");
  return given !== "" && SANE_ID.test(given) ? given : "";
}

const SANE_ID = /^[\w.:-]{1,128}$/;

function firstHeader(headers: RequestHeaders, names: readonly string[]): string {
  for (const name of names) {
    const value = headers.get(name);
    if (value !== "") return bounded(value);
  }
  return "";
}

const NAME_CHARACTERS_MAX = 128;

function bounded(value: string): string {
  return value.length > NAME_CHARACTERS_MAX ? value.slice(0, NAME_CHARACTERS_MAX) : value;
}
