import type { OnReadOpts, Socket } from "node:net";
import { LONG_READ_BYTES, LONG_READS } from "../../base/long-reads.ts";
import { ChunkFraming } from "../../http/chunk-framing.ts";

/**
 * What is read of one connection is worked on at once, in the densest of answers a millisecond for each 2 KiB, and so is what
 * several connections bring in the same pass: at 64 KiB six of them held the event loop for 120 ms together, at 16 KiB for 20.
 */
const READ_BYTES = 16_384;
/** Small, since one piece that is kept keeps its whole slab. */
const SLAB_BYTES = 8_192;
const POOLED_BYTES_MAX = 2_048;

let slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
let used = 0;

/**
 * Memory that connections to engines are read with: all into one buffer, since they are read one after another, and each
 * read is copied out of it before the next, into a slice of a slab. Node would allocate 64 KiB for each read and then as
 * much again as came; a stream's event is some 300 bytes.
 */
export const READ_SLAB = {
  /** What was read last. */
  read: Buffer.allocUnsafeSlow(READ_BYTES),

  /** Where the memory of `room` begins. */
  at: 0,

  /** Memory with room for so many bytes. */
  room(bytes: number): Buffer {
    if (bytes > POOLED_BYTES_MAX) {
      this.at = 0;
      return Buffer.allocUnsafeSlow(bytes);
    }
    if (used + bytes > SLAB_BYTES) {
      slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
      used = 0;
    }
    this.at = used;
    return slab;
  },

  /** The first bytes of the room that was asked for last are a piece; they never change. */
  piece(memory: Buffer, bytes: number): Buffer {
    if (memory === slab) used += bytes;
    return memory.subarray(this.at, this.at + bytes);
  },

  /** What was read last, so many bytes of it, as a piece. */
  copied(bytes: number): Buffer {
    const memory = this.room(bytes);
    this.read.copy(memory, this.at, 0, bytes);
    return this.piece(memory, bytes);
  },
};

/** What came in place of an answer: how many bytes of the shared buffer are left, and what was kept of the reads before. */
interface BehindInterim {
  readonly bytes: number;
  /** Goes before them; undefined where nothing was kept. */
  readonly kept: Buffer | undefined;
}

const NOTHING_LEFT: BehindInterim = { bytes: 0, kept: undefined };
/** Of HTTP/1.0 and 1.1; where a digit may be anything there is a space. */
const STATUS_LINE = Buffer.from("HTTP/1.  1  ");
const SPACE = 32;
const SWITCHES = "01";
/** Of one interim answer; a longer one is no such thing. */
const HEAD_BYTES_MAX = 16_384;

/**
 * Passes over interim answers (RFC 9110 15.2), which may come before any answer, asked for or not: 100, 102, 103. Undici
 * takes a 100 that it did not ask for as the end of its connection. 101 is none of them: another protocol begins.
 */
class InterimAnswers {
  /** Of an interim answer, or of what may be one, while its end is to come. */
  #kept: Buffer | undefined;

  /** A request goes out. */
  begin(): void {
    this.#kept = undefined;
  }

  /** Takes them out of what was read into the shared buffer. Nothing is left while one is still coming. */
  passOver(bytes: number): BehindInterim {
    const kept = this.#kept;
    const { read } = READ_SLAB;
    if (kept === undefined && bytes > STATUS_LINE.length && !isInterim(read, bytes)) return { bytes, kept };
    const before = kept?.length ?? 0;
    const came = kept === undefined ? read.subarray(0, bytes) : Buffer.concat([kept, read.subarray(0, bytes)]);
    let from = 0;
    while (from < came.length) {
      const rest = came.subarray(from);
      if (!isInterim(rest, rest.length)) break;
      const end = rest.indexOf(HEAD_END);
      if (end < 0 && rest.length > HEAD_BYTES_MAX) break;
      if (end < 0) {
        this.#kept = Buffer.from(rest);
        return NOTHING_LEFT;
      }
      from += end + HEAD_END.length;
    }
    this.#kept = undefined;
    if (from < before) return { bytes, kept: came.subarray(from, before) };
    read.copyWithin(0, from - before, bytes);
    return { bytes: bytes - (from - before), kept: undefined };
  }
}

/** Or its beginning, as far as that came. */
function isInterim(bytes: Buffer, length: number): boolean {
  for (let i = 0; i < STATUS_LINE.length && i < length; i++) {
    if (STATUS_LINE[i] !== SPACE && STATUS_LINE[i] !== bytes[i]) return false;
  }
  if (length > 8 && bytes[8] !== SPACE) return false;
  return length < STATUS_LINE.length || bytes.toString("latin1", 10, 12) !== SWITCHES;
}

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
    if (read >= LONG_READ_BYTES) LONG_READS.came(socket);
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
