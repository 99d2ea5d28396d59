import { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";

/**
 * A TLS socket as a stream of bytes. Node's HTTP/2 writes to a socket itself, past its queue, and Node ends the process where
 * somebody else writes to a TLS socket meanwhile; through a stream all that is written has one order.
 *
 * It closes, and does not end, as its client leaves: at a stream's end Node shuts its own side down behind what is still to be
 * written, and ends the process where HTTP/2 writes before that is done. The socket does the same without that: it ends its side
 * as the client's ends, what is written after that fails, and both are closed.
 */
export class TlsConnection extends Duplex {
  readonly #socket: TLSSocket;

  constructor(socket: TLSSocket) {
    super();
    this.#socket = socket;
    socket.on("data", (bytes: Buffer) => {
      if (!this.push(bytes)) socket.pause();
    });
    socket.on("error", (error) => this.destroy(error));
    socket.on("close", () => this.destroy());
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(bytes, done);
  }

  /** In one record of TLS, where they fit. */
  override _writev(chunks: { readonly chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#socket.write(Buffer.concat(chunks.map(({ chunk }) => chunk)), done);
  }

  override _final(done: (error?: Error | null) => void): void {
    this.#socket.end(() => done());
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}
