import type { IncomingMessage } from "node:http";

import { type Refusal, refusal } from "./errors.ts";

/**
 * Reads a request body once, into one buffer, and hands it on, or a refusal when it is longer than `bytesMax`: by its
 * declared length before any byte is read, else when it has grown so far. Hands nothing on when the client leaves.
 */
export function readBody(
  incoming: IncomingMessage,
  declaredLength: string,
  bytesMax: number,
  done: (body: Buffer | Refusal) => void,
): void {
  if (Number(declaredLength) > bytesMax) return done(tooLarge(bytesMax));
  let first: Buffer | undefined;
  let chunks: Buffer[] | undefined;
  let bytes = 0;
  incoming.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > bytesMax) {
      incoming.removeAllListeners("data");
      incoming.pause();
      done(tooLarge(bytesMax));
    } else if (first === undefined) first = chunk;
    else (chunks ??= [first]).push(chunk);
  });
  incoming.on("end", () => done(chunks === undefined ? (first ?? EMPTY) : Buffer.concat(chunks, bytes)));
}

const EMPTY = Buffer.alloc(0);

function tooLarge(bytesMax: number): Refusal {
  return refusal("too-large", `The request body is larger than ${bytesMax} bytes.`);
}

/**
 * The same JSON object with one more field at its end, where a reader takes it over an earlier one of the same name.
 * `json` must be an object, as JSON.parse found.
 */
export function withField(json: Buffer, name: string, value: unknown): Buffer {
  let end = json.length - 1;
  while (json[end] !== 0x7d) end--;
  let before = end - 1;
  while (json[before]! <= 0x20) before--;
  const comma = json[before] === 0x7b ? "" : ",";
  const field = Buffer.from(`${comma}${JSON.stringify(name)}:${JSON.stringify(value)}`);
  return Buffer.concat([json.subarray(0, end), field, json.subarray(end)]);
}
