import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { Client, Dispatcher } from "undici";
import { Attempt, type AttemptListener } from "#live/upstream/connection/attempt.ts";
import { type Upstream, UpstreamConnection } from "#live/upstream/connection/upstream-pools.ts";

const stale = Object.assign(new Error("reset"), { code: "ECONNRESET" });
const refusedError = Object.assign(new Error("refused"), { code: "ECONNREFUSED" });

/** An upstream with one client, by which a test plays the connection's part. */
class FakeUpstream {
  inFlight = 0;
  taken = 0;
  givenBack = 0;
  dispatched = 0;
  handler: Dispatcher.DispatchHandler | undefined;
  readonly #isKept: boolean;

  constructor(isKept: boolean) {
    this.#isKept = isKept;
  }

  readonly clients = {
    take: () => {
      this.taken++;
      const client = {
        on: () => client,
        dispatch: (_options: object, handler: Dispatcher.DispatchHandler) => {
          this.dispatched++;
          this.handler = handler;
          return true;
        },
      };
      const connection = new UpstreamConnection(() => client as unknown as Client);
      if (this.#isKept) connection.answered();
      return connection;
    },
    giveBack: () => void this.givenBack++,
  };
}

/** What a connection does to a request, by undici's order: start, head, pieces, then an end or an error. */
class Played {
  readonly upstream: FakeUpstream;
  readonly heard: string[] = [];
  readonly attempt: Attempt;
  #at: "queued" | "started" | "answered" | "over" = "queued";
  #left = false;
  readonly #controller = {
    abort: (error: Error) => {
      if (this.#at !== "over") this.#end(() => this.upstream.handler?.onResponseError?.(this.#control, error));
    },
    pause: () => {},
    resume: () => {},
  };

  /** Over a connection that was kept, or one that is made for it. */
  constructor(isKept: boolean) {
    this.upstream = new FakeUpstream(isKept);
    const listener: AttemptListener = {
      answerStarted: () => void this.heard.push("started"),
      answerData: () => void this.heard.push("data"),
      answerEnded: () => void this.heard.push("ended"),
      attemptReconnects: () => void this.heard.push("reconnects"),
      attemptBroke: () => void this.heard.push("broke"),
    };
    const request = { path: "/", headers: [], body: Buffer.alloc(0) };
    this.attempt = new Attempt(this.upstream as unknown as Upstream, request, listener);
    this.attempt.send();
  }

  get #control(): Dispatcher.DispatchController {
    return this.#controller as unknown as Dispatcher.DispatchController;
  }

  get over(): boolean {
    return this.#at === "over";
  }

  async play(what: Move): Promise<void> {
    const { handler } = this.upstream;
    const heard = this.heard.length;
    if (what === "leave") {
      this.attempt.abort();
      this.#left = true;
    } else if (what === "wait") {
      await Promise.resolve();
      // The request went out again, on a new connection.
      if (this.#at === "over" && this.upstream.dispatched === 2 && this.upstream.inFlight === 1) this.#at = "queued";
    } else if (this.#at === "over") return;
    else if (what === "start" && this.#at === "queued") {
      this.#at = "started";
      handler?.onRequestStart?.(this.#control, {});
    } else if (what === "head" && this.#at === "started") {
      this.#at = "answered";
      handler?.onResponseStart?.(this.#control, 200, {});
    } else if (what === "piece" && this.#at === "answered") handler?.onResponseData?.(this.#control, Buffer.from("x"));
    else if (what === "end" && this.#at === "answered") {
      this.#end(() => handler?.onResponseEnd?.(this.#control, {}));
    } else if (what === "reset" || what === "refuse") {
      this.#end(() => handler?.onResponseError?.(this.#control, what === "reset" ? stale : refusedError));
    }
    if (this.#left) assert.equal(this.heard.length, heard, `${what} was heard after the attempt was left`);
  }

  #end(call: () => void): void {
    this.#at = "over";
    call();
  }
}

type Move = "start" | "head" | "piece" | "end" | "reset" | "refuse" | "leave" | "wait";
const MOVES = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom<Move>("start", "head", "piece") },
    { weight: 2, arbitrary: fc.constantFrom<Move>("end", "reset", "refuse", "leave", "wait") },
  ),
  { maxLength: 14 },
);

describe("an attempt, whatever its connection does", () => {
  test("is released once, whether it ends, breaks or is left", async () => {
    const endings = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.boolean(), MOVES, async (isKept, moves) => {
        const played = new Played(isKept);
        const { upstream, heard } = played;
        for (const move of moves) {
          await played.play(move);
          assert.equal(upstream.inFlight, 1 - upstream.givenBack);
        }
        for (let i = 0; i < 3; i++) for (const move of ["wait", "start", "refuse"] as const) await played.play(move);
        assert.deepEqual([upstream.inFlight, upstream.taken, upstream.givenBack], [0, 1, 1]);
        const ends = heard.filter((one) => one === "ended" || one === "broke");
        assert.ok(ends.length <= 1 && (ends.length === 0 || heard.at(-1) === ends[0]), heard.join(" "));
        assert.ok(
          upstream.dispatched <= (isKept ? 2 : 1),
          "it goes out again once at most, and only over a kept connection",
        );
        assert.equal(heard.filter((one) => one === "reconnects").length, upstream.dispatched - 1);
        endings.add(ends[0] ?? "left");
        if (upstream.dispatched === 2) endings.add("again");
      }),
      { numRuns: 500 },
    );
    assert.deepEqual([...endings].sort(), ["again", "broke", "ended", "left"]);
  });
});
