/** What a write fails with to a pipe whose reader has left, the first time and afterwards, or to a closed terminal. */
const CLOSED: ReadonlySet<string | undefined> = new Set(["EPIPE", "EIO", "ERR_STREAM_DESTROYED"]);

/**
 * Lets a command go on when nobody reads its output any more, as in `gnomon trace info X | head -1`: what it writes is
 * dropped, and files, exit code and a running gateway are as they would have been. Other errors are thrown.
 */
export function tolerateClosedPipe(stream: NodeJS.WritableStream): void {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (!CLOSED.has(error.code)) throw error;
  });
}
