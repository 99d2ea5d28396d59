/** Reads the answers of one HTTP/1.1 connection as their bytes come, however a proxy cuts and frames them. */
export class ResponseReader {
  #head = "";
  /** Bytes of the body, or of the chunk with its line end, that are still to come; -1 in a head, -2 before a chunk. */
  #missing = IN_HEAD;
  #status = 0;
  #chunked = false;
  #size = "";
  #lineEnded = false;
  /** The chunk that ends a body. */
  #last = false;
  /** Ends of events so far. */
  events = 0;

  /** Calls `ended` with the status of each answer that ends in these bytes. */
  push(data: Buffer, ended: (status: number) => void): void {
    for (let at = 0; at < data.length;) {
      if (this.#missing === IN_HEAD) at = this.#readHead(data, at);
      else if (this.#missing === BEFORE_CHUNK) at = this.#readSize(data, at);
      else {
        const end = Math.min(data.length, at + this.#missing);
        // The line end behind a chunk is no part of the body.
        this.#countEvents(data, at, this.#chunked ? Math.min(end, at + this.#missing - 2) : end);
        this.#missing -= end - at;
        at = end;
        if (this.#missing === 0 && this.#chunked && !this.#last) this.#missing = BEFORE_CHUNK;
      }
      if (this.#missing !== 0) continue;
      this.#missing = IN_HEAD;
      ended(this.#status);
    }
  }

  #readHead(data: Buffer, at: number): number {
    const before = this.#head.length;
    this.#head += data.toString("latin1", at);
    const end = this.#head.indexOf("\r\n\r\n", Math.max(0, before - 3));
    if (end < 0) return data.length;
    const head = this.#head.slice(0, end).toLowerCase();
    this.#head = "";
    this.#status = Number(head.slice(9, 12));
    this.#chunked = head.includes("\r\ntransfer-encoding: chunked");
    this.#last = false;
    this.#size = "";
    this.#missing = this.#chunked ? BEFORE_CHUNK : Number(/\r\ncontent-length: (\d+)/.exec(head)?.[1] ?? 0);
    return at + end + 4 - before;
  }

  #readSize(data: Buffer, at: number): number {
    const end = data.indexOf(LINE_FEED, at);
    this.#size += data.toString("latin1", at, end < 0 ? data.length : end);
    if (end < 0) return data.length;
    const bytes = Number.parseInt(this.#size, 16);
    this.#size = "";
    this.#last = bytes === 0;
    this.#missing = bytes + 2;
    return end + 1;
  }

  /** An event ends with an empty line, wherever it was cut. */
  #countEvents(data: Buffer, at: number, end: number): void {
    for (let i = at; i < end; i++) {
      const isLineFeed = data[i] === LINE_FEED;
      if (isLineFeed && this.#lineEnded) this.events++;
      this.#lineEnded = isLineFeed;
    }
  }
}

const IN_HEAD = -1;
const BEFORE_CHUNK = -2;
const LINE_FEED = 10;
