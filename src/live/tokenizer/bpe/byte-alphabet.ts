/**
 * The characters by which a byte-level vocabulary writes bytes: printable Latin-1 stands for itself, the other 68 bytes
 * for U+0100 and on, in order.
 */
export const BYTE_CHARACTERS: readonly string[] = alphabet();

function alphabet(): string[] {
  const characters: string[] = [];
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    characters.push(String.fromCharCode(printable ? byte : next++));
  }
  return characters;
}

const BYTE_OF: ReadonlyMap<number, number> = new Map(
  BYTE_CHARACTERS.map((character, byte) => [character.charCodeAt(0), byte]),
);

/** Writes the bytes that a vocabulary entry stands for; returns how many, or -1 where it is not in the alphabet. */
export function writeBytes(entry: string, bytes: Uint8Array): number {
  if (entry.length > bytes.length) return -1;
  for (let i = 0; i < entry.length; i++) {
    const byte = BYTE_OF.get(entry.charCodeAt(i));
    if (byte === undefined) return -1;
    bytes[i] = byte;
  }
  return entry.length;
}
