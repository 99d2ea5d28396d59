import { createHash, timingSafeEqual } from "node:crypto";

import type { Client } from "./client.ts";

/** Who sends an Authorization header, or an x-api-key; undefined for nobody who may use this gateway. */
export type ClientAuth = (authorization: string | undefined, apiKey: string | undefined) => Client | undefined;

/** A key at rest, and whose it is. */
export interface ClientKey {
  /** SHA-256 of the key, 32 bytes. */
  readonly sha256: Buffer;
  readonly client: Client;
  /** Wall time from which on it opens nothing, in milliseconds since 1970. */
  readonly expiresMillis?: number | undefined;
}

/** Keys that the configuration holds in the clear, which are bound to nobody; `sloClasses` may be named with them. */
export function plainKeys(keys: readonly string[], sloClasses?: readonly string[]): ClientKey[] {
  return keys.map((key) => {
    const sha256 = digest(key);
    return { sha256, client: { tenant: undefined, key: sha256.toString("hex"), sloClass: "", sloClasses } };
  });
}

/**
 * Keys are kept and compared as digests, in a time that does not depend on how much of a digest is right. The scheme's
 * case does not matter, as in vLLM. The keys may be replaced while requests come.
 */
export class ClientKeys {
  #byDigest: ReadonlyMap<string, ClientKey>;

  constructor(keys: readonly ClientKey[]) {
    this.#byDigest = byDigest(keys);
  }

  get size(): number {
    return this.#byDigest.size;
  }

  replace(keys: readonly ClientKey[]): void {
    this.#byDigest = byDigest(keys);
  }

  readonly of: ClientAuth = (authorization, apiKey) => {
    for (const given of givenKeys(authorization, apiKey)) {
      const found = this.#find(digest(given));
      if (found !== undefined) return found;
    }
    return undefined;
  };

  #find(given: Buffer): Client | undefined {
    const key = this.#byDigest.get(bucketOf(given));
    if (key === undefined || !timingSafeEqual(given, key.sha256)) return undefined;
    return key.expiresMillis !== undefined && Date.now() >= key.expiresMillis ? undefined : key.client;
  }
}

/** The keys that a request brings: that of a bearer token, and an x-api-key. */
export function givenKeys(authorization: string | undefined, apiKey: string | undefined): string[] {
  const bearer = /^bearer +(.+)$/i.exec(authorization ?? "")?.[1] ?? "";
  return [bearer, apiKey ?? ""].filter((key) => key !== "");
}

function digest(key: string): Buffer {
  return createHash("sha256").update(key).digest();
}

/** The first half finds the key; the whole is compared. */
function bucketOf(sha256: Buffer): string {
  return sha256.toString("base64", 0, sha256.length / 2);
}

function byDigest(keys: readonly ClientKey[]): Map<string, ClientKey> {
  return new Map(keys.map((key) => [bucketOf(key.sha256), key]));
}
