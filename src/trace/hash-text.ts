import { expected } from "./fields.ts";

const BLOCK_BYTES = 8;

/** Base64 of the words, each least significant byte first: 8 bytes a block. */
export function encodeHashes(hashes: Int32Array): string {
  return new Uint8Array(hashes.buffer, hashes.byteOffset, hashes.byteLength).toBase64();
}

/** Reads what encodeHashes wrote; throws TraceFormatError naming `path`. */
export function decodeHashes(text: string, path: string): Int32Array {
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = Uint8Array.fromBase64(text);
  } catch {
    throw expected(path, "base64", text);
  }
  if (bytes.length % BLOCK_BYTES !== 0) throw expected(path, `base64 of ${BLOCK_BYTES} bytes a block`, text);
  return new Int32Array(bytes.buffer, 0, bytes.length / 4);
}
