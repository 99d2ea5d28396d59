/**
 * The same JSON with another count of cached tokens in its last usage object; as it is where that has none. An engine that
 * fetched a prompt's blocks calls all of them cached, whoever computed them and when.
 */
export function ownCachedTokens(json: Buffer, cachedTokens: number): Buffer {
  const usage = json.lastIndexOf(USAGE);
  const name = usage < 0 ? -1 : json.indexOf(CACHED, usage);
  if (name < 0) return json;
  let from = name + CACHED.length;
  while (json[from]! <= SPACE) from++;
  let to = from;
  while (json[to]! >= ZERO && json[to]! <= NINE) to++;
  if (to === from) return json;
  return Buffer.concat([json.subarray(0, from), Buffer.from(String(cachedTokens)), json.subarray(to)]);
}

/** Bare quotes cannot stand inside a JSON string. */
const USAGE = Buffer.from('"usage":');
const CACHED = Buffer.from('"cached_tokens":');
const SPACE = 0x20;
const ZERO = 0x30;
const NINE = 0x39;
