import { createHash } from "node:crypto";
import { cpus, hostname } from "node:os";

const DIGITS = 8;

/** Distinguishes this machine from others in a trace and does not name it: eight hexadecimal digits of a digest. */
export function machineDigest(): string {
  const text = `${hostname()} ${cpus().length} ${cpus()[0]?.model ?? ""}`;
  return createHash("sha256").update(text).digest("hex").slice(0, DIGITS);
}
