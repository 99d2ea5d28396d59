import type { IncomingMessage } from "node:http";

import { type Refusal, refusal } from "./errors.ts";

/**
 * Reads a request body once, into one buffer.
 *
 * Resolves with a refusal when it is longer than `bytesMax` (decided by content-length where there is one, before any
 * byte is read), and with undefined when the client left.
 */
export function readBody(incoming: IncomingMessage, bytesMax: number): Promise<Buffer | Refusal | undefined> {
  const declared = Number(incoming.headers["content-length"] ?? 0);
  if (declared > bytesMax) return Promise.resolve(tooLarge(bytesMax));
  return new Promise((resolve) => {
    let first: Buffer | undefined;
    let chunks: Buffer[] | undefined;
    let bytes = 0;
    incoming.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > bytesMax) {
        incoming.removeAllListeners("data");
        incoming.pause();
        resolve(tooLarge(bytesMax));
      } else if (first === undefined) first = chunk;
      else (chunks ??= [first]).push(chunk);
    });
    incoming.on("end", () => resolve(chunks === undefined ? (first ?? EMPTY) : Buffer.concat(chunks, bytes)));
    incoming.on("error", () => resolve(undefined));
    incoming.on("close", () => resolve(undefined));
  });
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
