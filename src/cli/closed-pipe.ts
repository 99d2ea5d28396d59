/** What a write fails with to a pipe whose reader has left, the first time and afterwards, or to a closed terminal. */
const CLOSED: ReadonlySet<string | undefined> = new Set(["EPIPE", "EIO", "ERR_STREAM_DESTROYED"]);

/**
 * Lets a command go on when nobody reads its output any more, as in `gnomon trace info X | head -1`: what it writes is
 * dropped, and files, exit code and a running gateway are as they would have been. Output that cannot be written for
 * another reason, such as a full disk, is dropped too, and `lost` gets the first reason.
 */
export function tolerateClosedPipe(stream: NodeJS.WritableStream, lost: (reason: string) => void): void {
  let isLost = false;
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (isLost || CLOSED.has(error.code)) return;
    isLost = true;
    lost(error.message.replace(/^[A-Z0-9]+: /, "").replace(/, write$/, ""));
  });
}
