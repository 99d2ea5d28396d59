import { encode } from "@msgpack/msgpack";
import { Router, XPublisher } from "zeromq";

const END = Buffer.alloc(8, 0xff);
let clock = 1_000;

/** A publisher of KV events on loopback that does what it is told, and its replay socket. */
export class FakePublisher {
  readonly #publisher = new XPublisher({ linger: 0 });
  readonly #subscribed: Promise<void>;
  readonly #router = new Router({ linger: 0 });
  #kept: { readonly number: number; readonly payload: Uint8Array }[] = [];
  #next = 0;
  /** Replays that were asked for, by their first number. */
  readonly replays: number[] = [];
  addresses = { publisher: "", replay: "" };
  /** Answers nobody. */
  isDeaf = false;

  constructor() {
    // What is sent before a subscription has arrived reaches nobody.
    this.#subscribed = this.#publisher.receive().then(
      () => {},
      () => {},
    );
  }

  /** Somebody follows it. */
  subscribed(): Promise<void> {
    return this.#subscribed;
  }

  /** `ports` of one before, to take its place. */
  static async start(addresses: { publisher?: string; replay?: string } = {}): Promise<FakePublisher> {
    const fake = new FakePublisher();
    // Whoever is connected to the publisher asks for a replay at once.
    await bound(fake.#router, addresses.replay);
    await bound(fake.#publisher, addresses.publisher);
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

/** A socket that was closed gives its port back a moment later. */
async function bound(socket: Router | XPublisher, address = "tcp://127.0.0.1:0"): Promise<void> {
  for (;;) {
    try {
      return await socket.bind(address);
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }
}

function numbered(number: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(number));
  return bytes;
}
