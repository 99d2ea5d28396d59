import { createHash } from "node:crypto";

/** Decides whether an Authorization header, or an x-api-key, holds one of the keys that clients of this gateway may use. */
export type ClientAuth = (authorization: string | undefined, apiKey: string | undefined) => boolean;

/** Keys are kept and compared as digests. The scheme's case does not matter, as in vLLM. */
export function clientAuth(keys: readonly string[]): ClientAuth {
  const digests = new Set(keys.map(digest));
  return (authorization, apiKey) => givenKeys(authorization, apiKey).some((key) => digests.has(digest(key)));
}

/** The keys that a request brings: that of a bearer token, and an x-api-key. */
export function givenKeys(authorization: string | undefined, apiKey: string | undefined): string[] {
  const bearer = /^bearer +(.+)$/i.exec(authorization ?? "")?.[1] ?? "";
  return [bearer, apiKey ?? ""].filter((key) => key !== "");
}

function digest(key: string): string {
  return createHash("sha256").update(key).digest("base64");
}
