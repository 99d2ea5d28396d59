import type { ReadStream } from "node:fs";
import type { Transform } from "node:stream";

/** Bytes that a file may become, however small it is. */
const FREE_BYTES = 67_108_864;
/** Bytes that each byte of a file may become beyond that; traces come to 10 to 60. */
const RATIO_MAX = 1_000;

/** Compressed data that becomes more than any trace does. */
export class DecompressionLimitError extends Error {
  override readonly name = "DecompressionLimitError";

  constructor() {
    super(
      `expected data that becomes at most ${RATIO_MAX} times as large when it is decompressed (beyond ${FREE_BYTES} bytes), got more`,
    );
  }
}

/**
 * What a file's bytes become, as they are read: no more is decompressed than is taken. Throws DecompressionLimitError where
 * a small file grows without end, and what reading and decompressing throw.
 */
export async function* decompressed(file: ReadStream, decompressor: Transform): AsyncGenerator<Buffer> {
  file.once("error", (error) => decompressor.destroy(error));
  let bytes = 0;
  try {
    for await (const chunk of file.pipe(decompressor) as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > FREE_BYTES + RATIO_MAX * file.bytesRead) throw new DecompressionLimitError();
      yield chunk;
    }
  } finally {
    file.destroy();
  }
}
