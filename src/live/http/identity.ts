import { createHmac } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { Fields } from "../base/fields.ts";
import { givenKeys } from "./client-auth.ts";
import type { RequestHeaders } from "./headers.ts";

/** Where the gateway looks for who asks. Header names in lower case, first match wins. */
export interface IdentityOptions {
  readonly tenantHeaders: readonly string[];
  readonly sessionHeaders: readonly string[];
  readonly inForce: {
    /** Header with which a client may select a profile, as it is now; undefined lets none. */
    readonly profileHeader: string | undefined;
  };
  /** Headers with the service class. */
  readonly sloHeaders: readonly string[];
  /** Keys the short ids that stand for API keys, users, tenants and sessions, so that nobody can look them up. */
  readonly secret: string;
}

/**
 * Who asks, and for which conversation. Safe to write down: tenant and session are keyed digests, which are equal where
 * what the client sent is, or the name of the tenant that a key is bound to; "" where it sent nothing.
 */
export interface Identity {
  readonly tenant: string;
  /** Who asks within the tenant, as the body names it; a digest. */
  readonly user: string;
  readonly session: string;
  readonly profile: string;
  readonly sloClass: string;
}

const IDS_REMEMBERED = 16_384;

/** Reads tenant, session, profile and service class of a request. */
export class Identifier {
  readonly #options: IdentityOptions;
  /** Made with the first one: it has room for all. */
  #ids: LRUCache<string, string> | undefined;

  constructor(options: IdentityOptions) {
    this.#options = options;
  }

  identify(headers: RequestHeaders, fields: Fields | undefined): Identity {
    const { tenantHeaders, sessionHeaders, inForce, sloHeaders } = this.#options;
    const user = this.#user(fields);
    const { client } = headers;
    const asked = bounded(firstHeader(headers, sloHeaders));
    // Else a client with a key of this gateway would have its limits anew under every name that it makes up.
    const named = headers.trusted || client.key === "" ? firstHeader(headers, tenantHeaders) : "";
    return {
      tenant: client.tenant ?? (this.#id("tenant", named) || this.#keyOf(headers) || user),
      user,
      session: this.#id("session", firstHeader(headers, sessionHeaders)) || this.#sessionOf(fields),
      profile: inForce.profileHeader === undefined ? "" : bounded(headers.get(inForce.profileHeader)),
      sloClass: client.sloClasses?.includes(asked) === false ? client.sloClass : asked,
    };
  }

  /** Of the key that let it in; of any other what was sent, however it was written. */
  #keyOf(headers: RequestHeaders): string {
    if (headers.client.key !== "") return this.#id("key", headers.client.key);
    const authorization = headers.get("authorization");
    const apiKey = headers.get("x-api-key");
    if (authorization === "" && apiKey === "") return "";
    return this.#id("key", givenKeys(authorization, apiKey)[0] ?? authorization);
  }

  #user(fields: Fields | undefined): string {
    const user = fields?.["user"];
    return typeof user === "string" ? this.#id("user", user) : "";
  }

  #sessionOf(fields: Fields | undefined): string {
    if (fields === undefined) return "";
    for (const name of SESSION_FIELDS) {
      const value = fields[name];
      if (typeof value === "string" && value !== "") return this.#id("session", value);
    }
    return this.#user(fields);
  }

  /** A short id in place of a secret or a name; "" for "". */
  #id(kind: string, value: string): string {
    if (value === "") return "";
    const text = `${kind}-${value}`;
    const ids = (this.#ids ??= new LRUCache({ max: IDS_REMEMBERED }));
    const known = ids.get(text);
    if (known !== undefined) return known;
    const id = `${kind}-${createHmac("sha256", this.#options.secret).update(text).digest("hex").slice(0, ID_DIGITS)}`;
    if (text.length <= TEXT_REMEMBERED_MAX) ids.set(text, id);
    return id;
  }
}

/** 64 bits: among a million sessions two share an id once in 37 million runs. */
const ID_DIGITS = 16;
const TEXT_REMEMBERED_MAX = 512;

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
    if (value !== "") return value;
  }
  return "";
}

const NAME_CHARACTERS_MAX = 128;

function bounded(value: string): string {
  return value.length > NAME_CHARACTERS_MAX ? value.slice(0, NAME_CHARACTERS_MAX) : value;
}
