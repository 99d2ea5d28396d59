import { relative } from "node:path";
import type { TestEvent } from "node:test/reporters";

/** Marks a line of `fileTimes`, which no test prints. */
export const FILE_TIME = "⏱ ";

/**
 * A reporter beside the readable one: how long the tests of each file took, in milliseconds of wall time, a line a
 * file.
 */
export default async function* fileTimes(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const millisOf = new Map<string, number>();
  for await (const { type, data } of source) {
    if ((type !== "test:pass" && type !== "test:fail") || data.nesting > 0 || data.file === undefined) continue;
    const file = relative(process.cwd(), data.file);
    millisOf.set(file, (millisOf.get(file) ?? 0) + data.details.duration_ms);
  }
  for (const [file, millis] of millisOf) yield `${FILE_TIME}${file} ${Math.round(millis)}\n`;
}
