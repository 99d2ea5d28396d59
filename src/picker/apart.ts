/** Without what came with it from the socket, so that a body that waits holds no more than its own bytes. */
export function apart(body: Buffer): Buffer {
  return 2 * body.length < body.buffer.byteLength ? Buffer.from(body) : body;
}
