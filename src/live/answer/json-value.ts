/**
 * Where the value of a name begins in JSON bytes, from `start` on and before `end`; -1 where the name is not there. `name`
 * stands with its quotes: between bare quotes it cannot be inside a JSON string, where they would be escaped.
 */
export function valueAt(json: Buffer, name: Buffer, start: number, end: number): number {
  // What an event lacks would be searched for in all events behind it, once for each.
  const bytes = json.length - end > BEHIND_MAX ? json.subarray(0, end) : json;
  for (let found = bytes.indexOf(name, start); found >= 0 && found < end;) {
    const colon = behindSpace(bytes, found + name.length);
    if (bytes[colon] === COLON) return behindSpace(bytes, colon + 1);
    found = bytes.indexOf(name, colon);
  }
  return -1;
}

/** Bytes behind the end that cost less to search than to leave out. */
const BEHIND_MAX = 4_096;
const COLON = 0x3a;
const SPACE = 0x20;

function behindSpace(json: Buffer, from: number): number {
  let at = from;
  while (json[at]! <= SPACE) at++;
  return at;
}
