import type { Bell } from "./bell.ts";
import { MessageWriter } from "./message-writer.ts";
import type { SharedRing } from "./shared-ring.ts";

/** What waits for room in the ring, in bytes; a thread that is behind by more has a defect. */
const WAITING_BYTES_MAX = 256 * 1024 * 1024;
const RETRY_MILLIS = 1;
/** What is not urgent goes out with what is, or after so long. */
const LATER_MILLIS = 1;

/**
 * What one thread sends to another: in order, into shared memory, and where the ring is full from a list that is worked
 * off as room comes. The other thread's bell rings once for all that a turn of the event loop sent.
 */
export class Outbox {
  readonly writer = new MessageWriter();
  readonly #ring: SharedRing;
  readonly #bell: Bell;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #rings: "no" | "later" | "soon" = "no";
  #timer: NodeJS.Timeout | undefined;

  constructor(ring: SharedRing, bell: Bell) {
    this.#ring = ring;
    this.#bell = bell;
  }

  /** Sends what the writer holds; the other thread is woken at the end of this turn, or where it can wait, soon. */
  send(isUrgent: boolean): void {
    const { message } = this.writer;
    if (!this.#flush() || !this.#ring.write(message)) this.#keep(message);
    if (isUrgent) this.#soon();
    else if (this.#rings === "no") {
      this.#rings = "later";
      this.#timer ??= setTimeout(this.#later, LATER_MILLIS);
    }
  }

  /** Rings now for what was sent. */
  ring(): void {
    this.#flush();
    this.#rings = "no";
    this.#bell.ring();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#waiting = [];
  }

  #soon(): void {
    if (this.#rings === "soon") return;
    this.#rings = "soon";
    setImmediate(this.#now);
  }

  readonly #now = (): void => {
    if (this.#rings === "soon") this.ring();
  };

  readonly #later = (): void => {
    this.#timer = undefined;
    if (this.#rings === "later") this.ring();
  };

  /** False where something still waits. */
  #flush(): boolean {
    let sent = 0;
    for (const message of this.#waiting) {
      if (!this.#ring.write(message)) break;
      this.#waitingBytes -= message.length;
      sent++;
    }
    if (sent > 0) this.#waiting.splice(0, sent);
    return this.#waiting.length === 0;
  }

  #keep(message: Uint8Array): void {
    if (message.length > this.#ring.bytesMax) throw new RangeError(`a message of ${message.length} bytes fits no ring`);
    if (this.#waitingBytes + message.length > WAITING_BYTES_MAX) throw new RangeError("the other thread takes nothing");
    if (this.#waiting.length === 0) setTimeout(this.#again, RETRY_MILLIS);
    this.#waiting.push(message.slice());
    this.#waitingBytes += message.length;
  }

  readonly #again = (): void => {
    if (this.#waiting.length === 0) return;
    this.ring();
    if (this.#waiting.length > 0) setTimeout(this.#again, RETRY_MILLIS);
  };
}
