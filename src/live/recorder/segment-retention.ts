import { readdir, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import { isSegmentName } from "#trace/segment-name.ts";

export interface RetentionLimits {
  /** Compressed bytes of all segments in the folder together. */
  readonly bytesMax: number;
  /** Time since a segment was last written to, in milliseconds; undefined keeps them however old. */
  readonly ageMillisMax: number | undefined;
}

interface Kept {
  readonly path: string;
  readonly bytes: number;
  readonly writtenMillis: number;
}

/**
 * Keeps the segments of a folder, those of earlier runs included, within their bounds: whole ones are removed, the one
 * that was written to longest ago first, never the one that is being written. Other files are left alone.
 */
export class SegmentRetention {
  readonly #directory: string;
  readonly #limits: RetentionLimits;
  #kept: Kept[] = [];
  #keptBytes = 0;
  removed = 0;
  removedBytes = 0;

  constructor(directory: string, limits: RetentionLimits) {
    this.#directory = directory;
    this.#limits = limits;
  }

  /** Looks at the folder anew; `current` is the path of the segment that is being written. */
  async scan(current: string): Promise<void> {
    const names = (await readdir(this.#directory)).filter(isSegmentName);
    const found = await Promise.all(names.map((name) => keptAt(join(this.#directory, name))));
    this.#kept = found.filter((kept) => kept !== undefined && kept.path !== current) as Kept[];
    this.#kept.sort((a, b) => a.writtenMillis - b.writtenMillis || (a.path < b.path ? -1 : 1));
    this.#keptBytes = this.#kept.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Removes what is beyond the bounds, beside a segment of `currentBytes` that is being written. Never rejects. */
  async enforce(currentBytes: number): Promise<void> {
    for (
      let oldest = this.#kept[0];
      oldest !== undefined && this.#isBeyond(oldest, currentBytes);
      oldest = this.#kept[0]
    ) {
      this.#kept.shift();
      this.#keptBytes -= oldest.bytes;
      const gone = await unlink(oldest.path).then(
        () => true,
        () => false,
      );
      if (!gone) continue;
      this.removed++;
      this.removedBytes += oldest.bytes;
    }
  }

  #isBeyond({ writtenMillis }: Kept, currentBytes: number): boolean {
    const { bytesMax, ageMillisMax } = this.#limits;
    if (this.#keptBytes + currentBytes > bytesMax) return true;
    return ageMillisMax !== undefined && Date.now() - writtenMillis > ageMillisMax;
  }
}

/** Undefined where somebody else removed it. */
async function keptAt(path: string): Promise<Kept | undefined> {
  const found = await stat(path).catch(() => undefined);
  return found === undefined ? undefined : { path, bytes: found.size, writtenMillis: found.mtimeMs };
}
