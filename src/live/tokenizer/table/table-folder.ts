import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { openBpeTable } from "../bpe/bpe-table.ts";

/** Tables kept at once; the one that was not used for the longest time goes. */
const TABLES_MAX = 8;
/** A vocabulary of 2 million entries. */
const TABLE_BYTES_MAX = 1 << 28;
const ENDING = ".bpe";
const PART_ENDING = ".part";
/** What a process that was killed left of a file that it wrote. */
const PART_MILLIS_MAX = 600_000;
const OTHERS_MAY_WRITE = 0o022;

/**
 * Tables of tokenizers as files, for the next start and for other processes: whole ones alone are read, each by a digest,
 * and only from a folder that nobody else may write to. What cannot be read or kept is done without.
 */
export class TableFolder {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** Undefined where there is none; one that is damaged is removed. */
  read(key: string): SharedArrayBuffer | undefined {
    const file = this.#fileOf(key);
    let buffer: SharedArrayBuffer | undefined;
    try {
      if (refusal(this.#path) !== undefined) return undefined;
      buffer = readShared(file);
      if (buffer !== undefined && openBpeTable(buffer) !== undefined) {
        touch(file);
        return buffer;
      }
      rmSync(file, { force: true });
    } catch {
      // It is made again.
    }
    return undefined;
  }

  /** Undefined once it is kept, else why it is not. */
  write(key: string, table: SharedArrayBuffer): string | undefined {
    const part = join(this.#path, `${key}.${randomBytes(4).toString("hex")}${PART_ENDING}`);
    try {
      mkdirSync(this.#path, { recursive: true, mode: 0o700 });
      const refused = refusal(this.#path);
      if (refused !== undefined) return refused;
      writeFileSync(part, new Uint8Array(table), { mode: 0o600, flag: "wx" });
      renameSync(part, this.#fileOf(key));
      this.#bound();
      return undefined;
    } catch (error) {
      remove(part);
      return `${this.#path}: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  #bound(): void {
    const now = Date.now();
    const files = readdirSync(this.#path).map((name) => join(this.#path, name));
    const dated = files.flatMap((file) => {
      const stat = statSync(file, { throwIfNoEntry: false });
      return stat === undefined ? [] : [{ file, used: stat.mtimeMs }];
    });
    for (const { file, used } of dated) {
      if (file.endsWith(PART_ENDING) && now - used > PART_MILLIS_MAX) rmSync(file, { force: true });
    }
    const tables = dated.filter(({ file }) => file.endsWith(ENDING)).toSorted((a, b) => b.used - a.used);
    for (const { file } of tables.slice(TABLES_MAX)) rmSync(file, { force: true });
  }

  #fileOf(key: string): string {
    return join(this.#path, `${key}${ENDING}`);
  }
}

/** Why a folder is not to be trusted with what decides about tokens. */
function refusal(path: string): string | undefined {
  const stat = lstatSync(path);
  if (!stat.isDirectory()) return `${path} is not a folder`;
  if (process.getuid !== undefined && stat.uid !== process.getuid()) return `${path} belongs to somebody else`;
  return (stat.mode & OTHERS_MAY_WRITE) === 0 ? undefined : `${path} may be written by others`;
}

function readShared(file: string): SharedArrayBuffer | undefined {
  const handle = openSync(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    const { size } = fstatSync(handle);
    if (size > TABLE_BYTES_MAX) return undefined;
    const buffer = new SharedArrayBuffer(size);
    const bytes = new Uint8Array(buffer);
    for (let at = 0; at < size;) {
      const read = readSync(handle, bytes, at, size - at, at);
      if (read === 0) return undefined;
      at += read;
    }
    return buffer;
  } finally {
    closeSync(handle);
  }
}

function remove(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {
    // It was never there.
  }
}

/** Where files may be read and not changed, the order of use is that of making. */
function touch(file: string): void {
  try {
    const now = new Date();
    utimesSync(file, now, now);
  } catch {
    // Only the order of removal depends on it.
  }
}
