import { createHash } from "node:crypto";
import {
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { deserialize, serialize } from "node:v8";
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type { ResultMemory } from "#shadow/job/result-memory.ts";

export interface ResultLimits {
  /** Of all files together, on the disk. */
  readonly bytesMax: number;
  readonly filesMax: number;
  /** A larger result is not kept. */
  readonly resultBytesMax: number;
  /** Results that wait to be written are written once they are as large together. */
  readonly pendingBytesMax: number;
}

export const KEPT_LIMITS: ResultLimits = {
  bytesMax: 512 * 2 ** 20,
  filesMax: 20_000,
  resultBytesMax: 128 * 2 ** 20,
  pendingBytesMax: 128 * 2 ** 20,
};

const SUFFIX = ".result";
const PART = ".part";
/** Of what is over the limits, so that not every write prunes. */
const PRUNED_TO = 0.9;
const PART_MILLIS_MAX = 3_600_000;
const DIGEST_BYTES = 32;

/**
 * Finished results in a folder, a file each under the digest of what it is of and of the program, so that no other version
 * takes it for its own. Bounded: the ones that were not used for longest are removed. A file that is damaged is none;
 * where the folder cannot be written nothing is kept. Results are written by `flush`.
 */
export class KeptResults implements ResultMemory {
  readonly #folder: string;
  readonly #limits: ResultLimits;
  readonly #program: string;
  readonly #pending = new Map<string, Buffer>();
  #pendingBytes = 0;
  /** Results that were found, and those that were put here. */
  found = 0;
  kept = 0;
  /** Why nothing more is kept; "" while it is. */
  trouble = "";

  constructor(folder: string, limits: ResultLimits = KEPT_LIMITS, program = (programOfAll ??= programDigest())) {
    this.#folder = folder;
    this.#limits = limits;
    this.#program = program;
  }

  get(key: string): unknown {
    const name = this.#nameOf(key);
    const pending = this.#pending.get(name);
    if (pending !== undefined) return deserialize(pending);
    const path = join(this.#folder, name);
    try {
      const file = readFileSync(path);
      const bytes = zstdDecompressSync(file.subarray(DIGEST_BYTES), {
        maxOutputLength: this.#limits.resultBytesMax,
      });
      if (!digest(bytes).equals(file.subarray(0, DIGEST_BYTES))) throw new Error("damaged");
      const result: unknown = deserialize(bytes);
      this.found++;
      const now = new Date();
      utimesSync(path, now, now);
      return result;
    } catch {
      return undefined;
    }
  }

  put(key: string, result: unknown): void {
    if (this.trouble !== "") return;
    const bytes = serialize(result);
    if (bytes.length > this.#limits.resultBytesMax) return;
    this.#pending.set(this.#nameOf(key), bytes);
    this.#pendingBytes += bytes.length;
    this.kept++;
    if (this.#pendingBytes > this.#limits.pendingBytesMax) this.flush();
  }

  /** Writes what came since the last time: each whole or not at all, whenever the process ends. */
  flush(): void {
    if (this.#pending.size === 0) return;
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      for (const [name, bytes] of this.#pending) {
        const packed = zstdCompressSync(bytes, { params: { [constants.ZSTD_c_compressionLevel]: 1 } });
        const path = join(this.#folder, name);
        const part = `${path}.${process.pid}${PART}`;
        writeFileSync(part, Buffer.concat([digest(bytes), packed]), { mode: 0o600 });
        renameSync(part, path);
      }
      this.#prune();
    } catch (error) {
      this.trouble = error instanceof Error ? error.message : String(error);
    }
    this.#pending.clear();
    this.#pendingBytes = 0;
  }

  #nameOf(key: string): string {
    return createHash("sha256").update(this.#program).update(key).digest("hex") + SUFFIX;
  }

  #prune(): void {
    const { bytesMax, filesMax } = this.#limits;
    const files = readdirSync(this.#folder).flatMap((name) => {
      if (!name.endsWith(SUFFIX) && !name.endsWith(PART)) return [];
      const path = join(this.#folder, name);
      const stat = statSync(path, { throwIfNoEntry: false });
      return stat === undefined ? [] : [{ path, bytes: stat.size, usedAt: stat.mtimeMs }];
    });
    let bytes = files.reduce((sum, file) => sum + file.bytes, 0);
    let count = files.length;
    const isOver = bytes > bytesMax || count > filesMax;
    for (const file of files.toSorted((a, b) => a.usedAt - b.usedAt)) {
      const isLeft = file.path.endsWith(PART) && Date.now() - file.usedAt > PART_MILLIS_MAX;
      if (!isLeft && !(isOver && (bytes > PRUNED_TO * bytesMax || count > PRUNED_TO * filesMax))) continue;
      rmSync(file.path, { force: true });
      bytes -= file.bytes;
      count--;
    }
  }
}

function digest(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(bytes).digest();
}

/** It costs as much as a small simulation, and stays. */
let programOfAll: string | undefined;

/** Of all code that decides what comes out of a simulation, and of what runs it. */
function programDigest(): string {
  const root = resolve(import.meta.dirname, "../..");
  const hash = createHash("sha256").update(process.version);
  const names = globSync("{core,engine,sim,shadow,trace}/**/*.{ts,js}", { cwd: root }).sort();
  for (const name of names) hash.update(name).update(readFileSync(join(root, name)));
  return hash.digest("hex");
}
