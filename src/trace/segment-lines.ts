import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { constants, createZstdDecompress } from "node:zlib";
import { decompressed, DecompressionLimitError } from "./segment-decompressed.ts";

const ZSTD_MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
const NEWLINE = 10;

/** A longer line is no record: the longest holds some ten thousand block hashes. */
export const LINE_BYTES_MAX = 16_777_216;

/** Lines of a file, in batches as they are read. `fault` ends the file early, or names a line that was left out. */
export interface LineBatch {
  readonly lines: readonly string[];
  readonly fault: "torn" | "too-long" | "too-large" | "corrupt" | undefined;
  /** The end of compressed data that its writer closed. */
  readonly isClosed?: boolean;
}

/** Streams the complete lines of a file, plain or compressed with zstd, in bounded memory. */
export async function* segmentLines(path: string): AsyncGenerator<LineBatch> {
  const source = createReadStream(path, { highWaterMark: 262_144 });
  const isCompressed = await isZstd(path);
  const stream: AsyncIterable<Buffer> = isCompressed
    ? decompressed(source, createZstdDecompress({ chunkSize: 262_144, finishFlush: constants.ZSTD_e_end }))
    : source;
  // What was read since the last newline; undefined while a line that is too long goes by.
  let rest: Buffer[] | undefined = [];
  let restBytes = 0;
  try {
    for await (const chunk of stream) {
      const end = chunk.lastIndexOf(NEWLINE);
      if (end < 0) {
        rest?.push(chunk);
        restBytes += chunk.length;
      } else {
        const head = chunk.subarray(rest === undefined ? chunk.indexOf(NEWLINE) + 1 : 0, end);
        const text = Buffer.concat([...(rest ?? []), head]).toString("utf8");
        rest = [chunk.subarray(end + 1)];
        restBytes = chunk.length - end - 1;
        if (text !== "") yield { lines: text.split("\n"), fault: undefined };
      }
      if (rest !== undefined && restBytes > LINE_BYTES_MAX) {
        rest = undefined;
        yield { lines: [], fault: "too-long" };
      }
    }
  } catch (error) {
    yield { lines: [], fault: faultOf(error) };
    return;
  } finally {
    source.destroy();
  }
  if (rest !== undefined && restBytes > 0) yield { lines: [], fault: "torn" };
  else if (isCompressed) yield { lines: [], fault: undefined, isClosed: true };
}

/** What is wrong with a file as a whole, read to its end; one that is not compressed shows nothing. */
export async function segmentFault(path: string): Promise<LineBatch["fault"]> {
  if (!(await isZstd(path))) return undefined;
  for await (const { fault } of segmentLines(path)) if (fault !== undefined && fault !== "too-long") return fault;
  return undefined;
}

async function isZstd(path: string): Promise<boolean> {
  const file = await open(path, "r");
  try {
    const magic = Buffer.alloc(ZSTD_MAGIC.length);
    await file.read(magic, 0, magic.length, 0);
    return magic.equals(ZSTD_MAGIC);
  } finally {
    await file.close();
  }
}

/** Compressed data that ends early was being written; anything else that zstd refuses is damage. */
function faultOf(error: unknown): LineBatch["fault"] {
  if (error instanceof DecompressionLimitError) return "too-large";
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (code === "Z_BUF_ERROR") return "torn";
  if (code.startsWith("ZSTD_") || code.startsWith("Z_")) return "corrupt";
  throw error;
}
