import { createReadStream } from "node:fs";
import { createGunzip, createZstdDecompress } from "node:zlib";
import { decompressed } from "../segment-decompressed.ts";
import { ImportError } from "./import-report.ts";
import { unreadable } from "./unreadable.ts";

/** A longer line is no record of a trace; it is reported as an empty text with `tooLong`. */
const LINE_BYTES_MAX = 67_108_864;

export interface Line {
  readonly text: string;
  /** From 1. */
  readonly number: number;
  readonly tooLong: boolean;
}

const NEWLINE = 10;
/** Before the first line of what editors on Windows save. */
const BYTE_ORDER_MARK = "\u{FEFF}";
/** Read, and made of compressed bytes, at once: each piece takes some turns of the event loop. */
const CHUNK_BYTES = 262_144;

/**
 * The lines of a text file of any size, without their line ends and byte order mark; `.gz` and `.zst` are decompressed.
 * Blank lines are passed over. Throws ImportError when the file cannot be read.
 */
export async function* readLines(path: string, lineBytesMax: number = LINE_BYTES_MAX): AsyncGenerator<Line> {
  let held: Buffer[] = [];
  let heldBytes = 0;
  let number = 0;
  let tooLong = false;
  try {
    for await (const bytes of openBytes(path)) {
      let start = 0;
      for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
        hold(bytes.subarray(start, end));
        const line = finish();
        if (line) yield line;
        start = end + 1;
        // A file may be hundreds of millions of them.
        for (; bytes[start] === NEWLINE; start++) number++;
      }
      hold(bytes.subarray(start));
    }
  } catch (error) {
    throw error instanceof ImportError ? error : new ImportError(`${path}: ${unreadable(error)}`);
  }
  const last = finish();
  if (last) yield last;

  function hold(rest: Buffer): void {
    heldBytes += rest.length;
    if (heldBytes > lineBytesMax) [tooLong, held] = [true, []];
    else if (!tooLong && rest.length > 0) held.push(rest);
  }

  function finish(): Line | undefined {
    number++;
    const text = held.length === 1 ? (held[0]?.toString("utf8") ?? "") : Buffer.concat(held).toString("utf8");
    const begin = number === 1 && text.startsWith(BYTE_ORDER_MARK) ? 1 : 0;
    const line = { text: text.slice(begin, text.endsWith("\r") ? -1 : undefined), number, tooLong };
    [held, heldBytes, tooLong] = [[], 0, false];
    return line.tooLong || line.text.trim() !== "" ? line : undefined;
  }
}

function openBytes(path: string): AsyncIterable<Buffer> {
  const file = createReadStream(path, { highWaterMark: CHUNK_BYTES });
  if (path.endsWith(".gz")) return decompressed(file, createGunzip({ chunkSize: CHUNK_BYTES }));
  return path.endsWith(".zst") ? decompressed(file, createZstdDecompress({ chunkSize: CHUNK_BYTES })) : file;
}
