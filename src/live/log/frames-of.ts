/** Where a defect is, not its text: a message may quote what a client sent. */
export function framesOf(error: unknown): readonly string[] {
  const lines = error instanceof Error ? (error.stack ?? "").split("\n") : [];
  return lines.filter((line) => line.startsWith("    at ")).map((line) => line.trim());
}
