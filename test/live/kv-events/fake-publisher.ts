import { encode } from "@msgpack/msgpack";
import { Publisher, Router } from "zeromq";

const END = Buffer.alloc(8, 0xff);
let clock = 1_000;

/** A publisher of KV events on loopback that does what it is told, and its replay socket. */
export class FakePublisher {
  readonly #publisher = new Publisher({ linger: 0 });
  readonly #router = new Router({ linger: 0 });
  #kept: { readonly number: number; readonly payload: Uint8Array }[] = [];
  #next = 0;
  /** Replays that were asked for, by their first number. */
  readonly replays: number[] = [];
  addresses = { publisher: "", replay: "" };
  /** Answers nobody. */
  isDeaf = false;

  /** `ports` of one before, to take its place. */
  static async start(addresses: { publisher?: string; replay?: string } = {}): Promise<FakePublisher> {
    const fake = new FakePublisher();
    await fake.#publisher.bind(addresses.publisher ?? "tcp://127.0.0.1:0");
    await fake.#router.bind(addresses.replay ?? "tcp://127.0.0.1:0");
    fake.addresses = { publisher: fake.#publisher.lastEndpoint!, replay: fake.#router.lastEndpoint! };
    void fake.#answer();
    return fake;
  }

  /** Publishes the events of one step; lost ones are kept and not sent. */
  async publish(events: readonly unknown[], isLost = false): Promise<void> {
    const number = this.#next++;
    const payload = encode([(clock += 0.25), events, 0], { forceFloat32: false });
    this.#kept.push({ number, payload });
    if (!isLost) await this.#publisher.send(["", numbered(number), payload]);
  }

  /** Forgets the oldest messages. */
  forget(count: number): void {
    this.#kept = this.#kept.slice(count);
  }

  close(): void {
    this.#publisher.close();
    this.#router.close();
  }

  async #answer(): Promise<void> {
    try {
      for await (const [peer, , from] of this.#router) {
        if (this.isDeaf) continue;
        const first = Number(from!.readBigUInt64BE());
        this.replays.push(first);
        for (const { number, payload } of this.#kept) {
          if (number >= first) await this.#router.send([peer!, "", "", numbered(number), payload]);
        }
        await this.#router.send([peer!, "", "", END, ""]);
      }
    } catch {
      // It was closed.
    }
  }
}

function numbered(number: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(number));
  return bytes;
}
