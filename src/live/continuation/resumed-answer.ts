import type { Answer, AnswerCounts, Delivery } from "../answer/answer.ts";
import { faultOfEvent } from "../answer/faults.ts";
import { eventData, type SseScanner } from "../answer/sse-scanner.ts";
import { isFields } from "../base/fields.ts";

/**
 * Carries what another endpoint answers at which a stream goes on: the client has a head, and what goes out is written anew,
 * as text that gathers until the bytes at hand are read.
 */
export abstract class ResumedAnswer implements Answer {
  readonly carriage = "stream";
  protected readonly delivery: Delivery;
  protected readonly scanner: SseScanner;
  /** For the client. */
  protected out = "";
  #began = false;
  #isProving = false;

  constructor(delivery: Delivery, scanner: SseScanner) {
    this.delivery = delivery;
    this.scanner = scanner;
  }

  data(chunk: Buffer): void {
    this.scanner.push(chunk);
    while (!this.#isProving && this.delivery.stage !== "over" && this.scanner.next()) if (!this.event()) return;
    this.flush();
  }

  ended(): void {
    if (!this.#isProving) this.delivery.broke("cut");
  }

  /** The client has a head. */
  showHead(): void {}

  writeHeld(): void {
    const { out } = this;
    this.out = "";
    if (out !== "") this.delivery.write(Buffer.from(out));
  }

  abstract counts(): AnswerCounts;

  /** Reads the event at hand; false where nothing of what follows is wanted. */
  protected abstract event(): boolean;

  /** The router is notified of the first token once. */
  protected begin(): void {
    if (this.#began) return;
    this.#began = true;
    this.delivery.firstToken();
  }

  protected flush(): void {
    if (this.out === "") return;
    if (this.delivery.stage === "passing") this.writeHeld();
    else this.delivery.firstBytes();
  }

  /** All is there. */
  protected complete(): false {
    this.flush();
    this.delivery.marked("ok");
    this.delivery.completed("ok", true);
    return false;
  }

  /** All is there, unless the engine turns out to be shutting down; `whole` writes what waits for that. */
  protected proveEnd(whole: () => void): void {
    this.#isProving = true;
    this.delivery.proveEnd((isWhole) => {
      if (!isWhole) return this.delivery.broke("draining");
      whole();
      this.complete();
    });
  }

  /** What comes is another answer than the one that the client has a part of. */
  protected diverged(): false {
    this.flush();
    this.delivery.diverged();
    return false;
  }

  /** The engine failed here too, by the event at hand. */
  protected broke(): false {
    const { bytes, start, end, kind } = this.scanner;
    this.flush();
    if (kind === "error") {
      const event = bytes.subarray(start, end);
      const error = eventData(event)?.["error"];
      const code = isFields(error) && typeof error["code"] === "number" ? error["code"] : 0;
      this.delivery.broke(faultOfEvent(code, event), event);
    } else this.delivery.broke(kind === "garbage" ? "garbage" : "draining");
    return false;
  }
}
