import { createHash } from "node:crypto";

/** Says whether an Authorization header holds one of the keys that clients of this gateway may use. */
export type ClientAuth = (authorization: string | undefined) => boolean;

/** Keys are kept and compared as digests. The scheme's case does not matter, as in vLLM. */
export function clientAuth(keys: readonly string[]): ClientAuth {
  const digests = new Set(keys.map(digest));
  return (authorization) => {
    const match = /^bearer +(.+)$/i.exec(authorization ?? "");
    return match !== null && digests.has(digest(match[1]!));
  };
}

function digest(key: string): string {
  return createHash("sha256").update(key).digest("base64");
}
