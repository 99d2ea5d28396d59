import type { TraceReport } from "#trace/reader.ts";

/** What reading a trace came to, beside its requests: a line each, then the first places. */
export function reportNotes({
  dropped,
  segmentsMissing,
  unordered,
  unended,
  skipped,
  examples,
}: TraceReport): string[] {
  const notes: string[] = [];
  if (dropped > 0) notes.push(`${dropped} records are missing, as gaps show`);
  if (segmentsMissing > 0) notes.push(`${segmentsMissing} segments are missing`);
  if (unended > 0)
    notes.push(`${unended === 1 ? "a run has" : `${unended} runs have`} no end: still recorded, or killed, or cut off`);
  if (unordered > 0) notes.push(`${unordered} records lie before the time of the one above them`);
  for (const [reason, count] of Object.entries(skipped))
    notes.push(
      `${count} ${reason === "corrupt" ? "places are not as they were written" : `lines left out: ${reason}`}`,
    );
  return [...notes, ...examples.map((example) => `  ${example}`)];
}
