import { randomFor } from "#core/random.ts";
import { replay } from "#live/kv-events/replay.ts";
import { decode, encode } from "@msgpack/msgpack";
import { Publisher, Router, Subscriber } from "zeromq";

const END = Buffer.alloc(8, 0xff);
const REPLAY_MILLIS = 1_000;
/** Seed and stream of what is dropped. */
const DROPS = [7, 3] as const;

/** What it does to the messages that pass. */
export interface RelayFaults {
  dropShare: number;
  /** Nothing passes, and what would have is lost. */
  paused: boolean;
  replayRefused: boolean;
}

/** A message as of an engine that sends no tokens. */
function withoutTokens(payload: Uint8Array): Uint8Array {
  const [seconds, events, ...rest] = decode(payload, { useBigInt64: true }) as [number, object[], ...unknown[]];
  const bare = events.map((event) => ("token_ids" in event ? { ...event, token_ids: [] } : event));
  return encode([seconds, bare, ...rest], { useBigInt64: true });
}

/** Stands between an engine's publisher of KV events and whoever follows it, and loses messages on purpose. */
export class EventRelay {
  readonly faults: RelayFaults = { dropShare: 0, paused: false, replayRefused: false };
  readonly #from: { readonly publisher: string; readonly replay: string };
  readonly #subscriber = new Subscriber({ linger: 0, reconnectInterval: 100 });
  readonly #publisher = new Publisher({ linger: 0 });
  readonly #router = new Router({ linger: 0 });
  readonly #random = randomFor(...DROPS);
  passed = 0;
  lost = 0;

  readonly #hidesTokens: boolean;

  constructor(publisherPort: number, replayPort: number, hidesTokens = false) {
    this.#hidesTokens = hidesTokens;
    this.#from = { publisher: `tcp://127.0.0.1:${publisherPort}`, replay: `tcp://127.0.0.1:${replayPort}` };
  }

  /** Listens at free ports. */
  async start(): Promise<{ readonly port: number; readonly replayPort: number }> {
    await this.#publisher.bind("tcp://127.0.0.1:*");
    await this.#router.bind("tcp://127.0.0.1:*");
    this.#subscriber.connect(this.#from.publisher);
    this.#subscriber.subscribe("");
    void this.#pass().catch(() => {});
    void this.#answer().catch(() => {});
    return { port: portOf(this.#publisher.lastEndpoint), replayPort: portOf(this.#router.lastEndpoint) };
  }

  close(): void {
    this.#subscriber.close();
    this.#publisher.close();
    this.#router.close();
  }

  async #pass(): Promise<void> {
    for await (const frames of this.#subscriber) {
      const { dropShare, paused } = this.faults;
      if (paused || (dropShare > 0 && this.#random.next() < dropShare)) {
        this.lost++;
        continue;
      }
      this.passed++;
      await this.#publisher.send(frames.map((frame, i) => (i + 1 === frames.length ? this.#shown(frame) : frame)));
    }
  }

  #shown(payload: Uint8Array): Uint8Array {
    return this.#hidesTokens ? withoutTokens(payload) : payload;
  }

  async #answer(): Promise<void> {
    for await (const [peer, , from] of this.#router) {
      if (this.faults.replayRefused || peer === undefined || from?.length !== 8) continue;
      try {
        for await (const { number, payload } of replay(
          this.#from.replay,
          Number(from.readBigUInt64BE()),
          REPLAY_MILLIS,
        )) {
          const bytes = Buffer.alloc(8);
          bytes.writeBigUInt64BE(BigInt(number));
          await this.#router.send([peer, "", "", bytes, this.#shown(payload)]);
        }
        await this.#router.send([peer, "", "", END, ""]);
      } catch {
        // The engine is away, and so is its answer.
      }
    }
  }
}

function portOf(address: string | null): number {
  return Number(/:(\d+)$/.exec(address ?? "")?.[1]);
}
