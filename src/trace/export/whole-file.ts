import { closeSync, fchmodSync, openSync, realpathSync, renameSync, rmSync, statSync, writeSync } from "node:fs";

const BATCH_CHARS = 262_144;

/**
 * Writes a file so that it is there whole or as it was before, whatever ends the process or fills the disk meanwhile: what
 * is not a file, as a pipe or a terminal, is written to as it is, and so is a file in a folder that takes no new ones.
 * Throws the system's error, with the given path.
 */
export function writeWholeFile(path: string, text: string | Iterable<string>): void {
  const pieces = typeof text === "string" ? [text] : text;
  try {
    const before = statSync(path, { throwIfNoEntry: false });
    if (before !== undefined && !before.isFile()) return writePieces(openSync(path, "w"), pieces);
    // A link stays one, to a file that is replaced.
    const place = before === undefined ? path : realpathSync(path);
    const part = `${place}.${process.pid}.part`;
    const file = openedBeside(part);
    if (file === undefined) return writePieces(openSync(path, "w"), pieces);
    try {
      if (before !== undefined) fchmodSync(file, before.mode);
      writePieces(file, pieces);
      renameSync(part, place);
    } catch (error) {
      rmSync(part, { force: true });
      throw error;
    }
  } catch (error) {
    throw error instanceof Error && "syscall" in error ? Object.assign(error, { path }) : error;
  }
}

function openedBeside(part: string): number | undefined {
  try {
    return openSync(part, "w");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? error.code : undefined;
    if (code === "EACCES" || code === "EPERM" || code === "EROFS" || code === "ENAMETOOLONG") return undefined;
    throw error;
  }
}

/** Writes and closes. */
function writePieces(file: number, pieces: Iterable<string>): void {
  try {
    let batch = "";
    for (const piece of pieces) {
      batch += piece;
      if (batch.length < BATCH_CHARS) continue;
      writeAll(file, batch);
      batch = "";
    }
    writeAll(file, batch);
  } finally {
    closeSync(file);
  }
}

function writeAll(file: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let from = 0; from < bytes.length;) from += writeSync(file, bytes, from);
}
