import { expected } from "./format-error.ts";

const BLOCK_BYTES = 8;
/** Node 24 has no base64 of its own for bytes. */
const NATIVE = "fromBase64" in Uint8Array;

/** Base64 of the words, each least significant byte first: 8 bytes a block. */
export function encodeHashes(hashes: Int32Array): string {
  const { buffer, byteOffset, byteLength } = hashes;
  if (NATIVE) return new Uint8Array(buffer, byteOffset, byteLength).toBase64();
  return Buffer.from(buffer, byteOffset, byteLength).toString("base64");
}

/** Reads what encodeHashes wrote; throws TraceFormatError naming `path`. */
export function decodeHashes(text: string, path: string): Int32Array {
  const bytes = NATIVE ? decoded(text) : decodedByBuffer(text);
  if (bytes === undefined) throw expected(path, "base64", text);
  if (bytes.length % BLOCK_BYTES !== 0) throw expected(path, `base64 of ${BLOCK_BYTES} bytes a block`, text);
  return new Int32Array(bytes.buffer, 0, bytes.length / 4);
}

function decoded(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.fromBase64(text);
  } catch {
    return undefined;
  }
}

/** The same without it: Buffer passes over what is no base64, which the way back shows. */
function decodedByBuffer(text: string): Uint8Array<ArrayBuffer> | undefined {
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? new Uint8Array(bytes) : undefined;
}
