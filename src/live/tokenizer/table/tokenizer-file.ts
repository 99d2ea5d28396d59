import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";

/** The whole text. */
export async function readTokenizerText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** SHA-256 of the bytes, read piece by piece: some 10 ms for 9 MB, and none of them kept. */
export async function tokenizerDigest(path: string): Promise<string> {
  const hash = createHash("sha256");
  try {
    for await (const piece of createReadStream(path, { highWaterMark: PIECE_BYTES })) hash.update(piece as Buffer);
  } catch (error) {
    throw unreadable(path, error);
  }
  return hash.digest("hex");
}

const PIECE_BYTES = 1 << 20;

/** An error that names the path, so that nobody puts it before the message again. */
export class UnreadableFile extends Error {}

function unreadable(path: string, error: unknown): UnreadableFile {
  const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
  const accepted = "the path of a tokenizer.json or the directory that holds one";
  return new UnreadableFile(`${path}: cannot be read (${code}); accepted is ${accepted}`, { cause: error });
}
