import type { IncomingMessage } from "node:http";

import { type Refusal, refusal } from "../answer/errors.ts";
import { type BodyTaker, GatewayMessage } from "./gateway-message.ts";

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
  const body = new CollectedBody(bytesMax, done);
  if (incoming instanceof GatewayMessage && incoming.takeBody(body)) return;
  incoming.on("data", (chunk: Buffer) => {
    if (body.piece(chunk)) return;
    incoming.removeAllListeners("data");
    incoming.pause();
  });
  incoming.on("end", () => body.whole());
}

class CollectedBody implements BodyTaker {
  readonly #bytesMax: number;
  readonly #done: (body: Buffer | Refusal) => void;
  #first: Buffer | undefined = undefined;
  #chunks: Buffer[] | undefined = undefined;
  #bytes = 0;

  constructor(bytesMax: number, done: (body: Buffer | Refusal) => void) {
    this.#bytesMax = bytesMax;
    this.#done = done;
  }

  /** What comes once the body is too large is passed over. */
  piece(chunk: Buffer): boolean {
    if (this.#bytes > this.#bytesMax) return false;
    this.#bytes += chunk.length;
    if (this.#bytes > this.#bytesMax) {
      this.#done(tooLarge(this.#bytesMax));
      return false;
    }
    if (this.#first === undefined) this.#first = chunk;
    else (this.#chunks ??= [this.#first]).push(chunk);
    return true;
  }

  whole(): void {
    if (this.#bytes > this.#bytesMax) return;
    this.#done(this.#chunks === undefined ? (this.#first ?? EMPTY) : Buffer.concat(this.#chunks, this.#bytes));
  }
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
