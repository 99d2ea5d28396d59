import { readFile } from "node:fs/promises";

/** A whole file as text, without the byte order mark that editors on Windows put before it. */
export async function unmarkedText(path: string): Promise<string> {
  return new TextDecoder().decode(await readFile(path));
}
