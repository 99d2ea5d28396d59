import type { OnReadOpts, Socket } from "node:net";

import { ChunkFraming } from "./chunk-framing.ts";
import { InterimAnswers } from "./interim-answers.ts";
import { READ_SLAB } from "./read-slab.ts";

/** Takes what arrives of a stream; each piece is the payload of all chunks that lay in one read. */
export interface PieceSink {
  /** Takes whole chunks from the beginning of bytes[0..to), as `Answer.chunks` does. */
  chunks(bytes: Buffer, to: number): number;
  piece(bytes: Buffer): void;
}

/**
 * What is read from a connection to an engine, on its way to undici, and past it while a stream lasts.
 *
 * Most of what a streamed event cost above the kernel was the way of its bytes through Node's readable, its task and
 * undici's parser, where all that is to be known of them is the size of a chunk. So while a stream is between its first and
 * its last chunk, its payload goes from the read straight to who wants it. Undici has parsed the head and whole chunks, and
 * waits for the next one; it gets the last chunk, and whatever is not plainly a chunk, with what was not walked over before
 * it. So the end of a message, its trailers, keeping the connection, an answer that is torn off and one that is garbage
 * are undici's; where it is closed, paused or destroyed is Node's.
 */
export class UpstreamReads {
  /** Option of the connection: what arrives is read into one buffer that all share. */
  readonly onread: OnReadOpts;
  #reads = 0;
  #came = false;
  /** The first read of an answer, until its head was parsed. */
  #first: Buffer | undefined;
  /** Of a stream whose chunks are followed. */
  #framing: ChunkFraming | undefined;
  #sink: PieceSink | undefined;
  /** Whose payload does not go by undici. */
  #direct: Socket | undefined;
  #paused = false;
  /** Nothing of the answer itself came yet. */
  #awaitsHead = true;
  readonly #interim = new InterimAnswers();

  constructor() {
    const take = (socket: Socket, bytes: number): boolean => this.#take(socket, bytes);
    this.onread = {
      buffer: READ_SLAB.read,
      callback(this: Socket, bytes: number): boolean {
        return take(this, bytes);
      },
    };
  }

  /** A request goes out; what is read next begins its answer. */
  begin(): void {
    this.end();
    this.#reads = 0;
    this.#came = false;
    this.#awaitsHead = true;
    this.#interim.begin();
  }

  /** Its answer is over, or nobody wants it any more. */
  end(): void {
    this.#first = undefined;
    this.#framing = undefined;
    this.#sink = undefined;
    this.#direct = undefined;
    this.#paused = false;
  }

  /**
   * Undici is parsing the head of a body in chunks. Its payload goes to the sink from the next read on before which a
   * chunk ended. Not where the head came in several reads, or behind another one.
   */
  follow(sink: PieceSink): void {
    const [first, framing] = [this.#first, new ChunkFraming()];
    this.#first = undefined;
    if (first === undefined || this.#reads !== 1) return;
    const head = first.indexOf(HEAD_END);
    if (head < 0) return;
    if (framing.walk(first, head + HEAD_END.length, first.length) < first.length) return;
    this.#framing = framing;
    this.#sink = sink;
  }

  /** Something was read since the request began. */
  get came(): boolean {
    return this.#came;
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** What is read from here on stays in the kernel, but for a read that is under way. */
  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#direct?.read(0);
  }

  /** Whether reading goes on. */
  #take(socket: Socket, read: number): boolean {
    if (this.#direct === socket) return this.#pass(socket, read);
    this.#came = true;
    let bytes = read;
    if (this.#awaitsHead) {
      const behind = this.#interim.passOver(read);
      bytes = behind.bytes;
      if (bytes === 0) return !this.#paused;
      this.#awaitsHead = false;
      if (behind.kept !== undefined) {
        this.#reads++;
        socket.push(behind.kept);
      }
    }
    const framing = this.#framing;
    if (framing !== undefined) {
      // Undici may still have some of what came before.
      if (framing.isBetween && socket.readableLength === 0 && !this.#paused) {
        this.#direct = socket;
        return this.#pass(socket, bytes);
      }
      if (framing.walk(READ_SLAB.read, 0, bytes) < bytes) this.#framing = undefined;
    }
    const piece = READ_SLAB.copied(bytes);
    this.#first = this.#reads++ === 0 ? piece : undefined;
    return socket.push(piece);
  }

  #pass(socket: Socket, bytes: number): boolean {
    const framing = this.#framing!;
    const { read } = READ_SLAB;
    const from = framing.isBetween ? (this.#sink?.chunks(read, bytes) ?? 0) : 0;
    if (from === bytes) return !this.#paused;
    const memory = READ_SLAB.room(bytes);
    const stoppedAt = framing.walk(read, from, bytes, memory, READ_SLAB.at);
    const { payload } = framing;
    const piece = payload === 0 ? undefined : READ_SLAB.piece(memory, payload);
    const rest =
      stoppedAt < bytes ? Buffer.concat([Buffer.from(framing.torn), read.subarray(stoppedAt, bytes)]) : undefined;
    const sink = this.#sink;
    if (rest !== undefined) this.#handBack();
    if (piece !== undefined) sink?.piece(piece);
    if (rest === undefined) return !this.#paused;
    return socket.destroyed || socket.push(rest);
  }

  /** All further is undici's. */
  #handBack(): void {
    this.#direct = undefined;
    this.#framing = undefined;
    this.#sink = undefined;
  }
}

const HEAD_END = Buffer.from("\r\n\r\n");
