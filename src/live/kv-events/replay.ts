/** One message of a publisher. */
export interface Message {
  readonly number: number;
  readonly payload: Uint8Array;
}

/** A publisher that was asked for what it kept has no more. */
const END = 0xffff_ffff_ffff_ffffn;
const NUMBER_BYTES = 8;
/** More than any publisher keeps by default. */
const MESSAGES_MAX = 100_000;

/**
 * Asks a publisher for the messages that it kept, from number `from` on, and gives them one by one up to the last.
 * Throws where it does not answer in time or not in its protocol: `["", topic?, number, payload]`, the number of the end
 * being -1 (vLLM sends the topic, SGLang and older versions of vLLM do not).
 */
export async function* replay(address: string, from: number, timeoutMillis: number): AsyncGenerator<Message> {
  const { Dealer } = await import("zeromq");
  const socket = new Dealer({ linger: 0, receiveTimeout: timeoutMillis, sendTimeout: timeoutMillis, ipv6: true });
  try {
    socket.connect(address);
    await socket.send([Buffer.alloc(0), numberBytes(from)]);
    for (let count = 0; count < MESSAGES_MAX; count++) {
      const frames = await socket.receive();
      const number = frames.at(-2);
      const payload = frames.at(-1);
      if (frames.length < 3 || number?.length !== NUMBER_BYTES || payload === undefined)
        throw new Error("the answer to a replay has other frames");
      if (number.readBigUInt64BE() === END) return;
      yield { number: numberOf(number), payload };
    }
  } finally {
    socket.close();
  }
}

export function numberOf(bytes: Buffer): number {
  return Number(bytes.readBigUInt64BE());
}

function numberBytes(number: number): Buffer {
  const bytes = Buffer.alloc(NUMBER_BYTES);
  bytes.writeBigUInt64BE(BigInt(number));
  return bytes;
}
