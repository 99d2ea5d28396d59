import * as z from "zod";
import { MIB, MILLIS_PER_DAY, millis } from "./schema-value.ts";

/** The trace recorder. */
export const record = z
  .strictObject({
    directory: z.string().min(1).optional().describe("Folder for trace segments; recording is on when it is set."),
    bufferBytesMax: z
      .int()
      .min(65_536)
      .max(1024 * MIB)
      .default(16 * MIB)
      .describe("Bytes of records waiting to be written; above that whole records are dropped and counted."),
    segmentBytesMax: z
      .int()
      .min(65_536)
      .max(1024 * 1024 * MIB)
      .default(64 * MIB)
      .describe("Compressed size at which a new segment begins."),
    segmentMillisMax: millis(1000, MILLIS_PER_DAY).default(3_600_000).describe("Age at which a new segment begins."),
    bytesMax: z
      .int()
      .min(131_072)
      .max(1024 * 1024 * 1024 * MIB)
      .default(16_384 * MIB)
      .describe(
        "Compressed size of all segments in the folder; above that whole segments are removed, the oldest first.",
      ),
    ageMaxHours: z
      .number()
      .min(0.01)
      .max(1_000_000)
      .optional()
      .describe("Hours since its last record after which a segment is removed; unset keeps them however old."),
    flushMillis: millis(10, 60_000).default(250).describe("Longest time that a record waits in memory."),
    fsync: z
      .enum(["never", "segment", "flush"])
      .default("segment")
      .describe("When to force data to the disk: never, as a segment closes, or at every flush."),
    candidatesMax: z
      .int()
      .min(0)
      .max(4096)
      .default(4)
      .describe("Candidates written with each decision, the chosen one first; a digest covers all of them."),
    compressionLevel: z.int().min(1).max(19).default(1).describe("zstd level."),
  })
  .refine((value) => value.bytesMax >= 2 * value.segmentBytesMax, {
    path: ["bytesMax"],
    message: "at least twice segmentBytesMax",
  });
