import { CommandFailure } from "./command-failure.ts";

const WORDS: Readonly<Record<string, string>> = {
  EADDRINUSE: "the address is in use",
  EADDRNOTAVAIL: "the address is not one of this machine's",
  EACCES: "permission denied",
  ENOTFOUND: "the host name is not known",
  ENOENT: "no such file or folder",
  ENOTDIR: "a part of the path is not a folder",
  EROFS: "the file system is read-only",
  ENOSPC: "the disk is full",
};

/** What the system refused, as one line for people. Anything that is not the system's word is thrown on. */
export function refusedBySystem(what: string, error: unknown, hint = ""): CommandFailure {
  const code = error instanceof Error && "code" in error ? String(error.code) : undefined;
  if (code === undefined) throw error;
  const words = WORDS[code] ?? code;
  return new CommandFailure(`${what}: ${words}${hint === "" ? "" : `; ${hint}`}`);
}
