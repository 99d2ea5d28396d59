/** Why a file could not be read, in plain words. */
export function unreadable(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOENT") return "no such file or folder";
  if (code === "EISDIR") return "expected a file, got a folder";
  if (code === "EACCES") return "permission denied";
  return `cannot be read: ${error instanceof Error ? error.message : String(error)}`;
}
