import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, type Socket, connect, createServer } from "node:net";
import { afterEach, test } from "node:test";
import { writeCopied } from "#live/answer/client-writer.ts";

const open: Socket[] = [];
afterEach(() => {
  for (const one of open.splice(0)) one.destroy();
});

/** Sockets of this end, each with one at the other end that does not read yet. */
async function pairs(count: number): Promise<{ readonly near: Socket; readonly far: Socket }[]> {
  const server = createServer({ pauseOnConnect: true }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const made: { readonly near: Socket; readonly far: Socket }[] = [];
  for (let i = 0; i < count; i++) {
    const accepted = once(server, "connection");
    const near = connect((server.address() as AddressInfo).port, "127.0.0.1");
    const [far] = (await accepted) as [Socket];
    await once(near, "connect").catch(() => {});
    open.push(near, far);
    made.push({ near, far });
  }
  server.close();
  return made;
}

test("what waits in a socket keeps its bytes, whatever others write meanwhile", async () => {
  const [slow, fast] = (await pairs(2)) as [{ near: Socket; far: Socket }, { near: Socket; far: Socket }];
  const read = Buffer.alloc(4_096);
  const sent: Record<"slow" | "fast", Buffer[]> = { slow: [], fast: [] };
  const write = (to: "slow" | "fast", socket: Socket, i: number): boolean => {
    const length = 1 + ((i * 37) % 3_000);
    for (let at = 0; at < length; at++) read[at] = (i + at) & 0xff;
    sent[to].push(Buffer.from(read.subarray(0, length)));
    const goesOn = writeCopied(socket, read, length);
    read.fill(0xee);
    return goesOn;
  };
  let i = 0;
  let waited = 0;
  // Until the kernel takes no more of the first one, and some beyond that.
  while (waited < 50) {
    if (!write("slow", slow.near, i++)) waited++;
    if (i % 5 === 0) write("fast", fast.near, i);
    if (i % 64 === 0) await new Promise((resolve) => setImmediate(resolve));
    fast.far.resume();
  }
  assert.ok(slow.near.writableLength > 0);
  const received: Buffer[] = [];
  slow.near.end();
  slow.far.on("data", (piece: Buffer) => received.push(piece)).resume();
  await once(slow.far, "end");
  assert.deepEqual(Buffer.concat(received), Buffer.concat(sent.slow));
});

test("two sockets get each their own bytes out of one memory", async () => {
  const both = await pairs(2);
  const received: Buffer[][] = [[], []];
  for (const [i, { far }] of both.entries()) far.on("data", (piece: Buffer) => received[i]!.push(piece)).resume();
  const sent: Buffer[][] = [[], []];
  for (let i = 0; i < 500; i++) {
    for (const [of, { near }] of both.entries()) {
      const bytes = Buffer.alloc(300, (2 * i + of) & 0xff);
      sent[of]!.push(bytes);
      writeCopied(near, bytes, bytes.length - (i % 7));
    }
  }
  for (const [i, { near, far }] of both.entries()) {
    near.end();
    if (!far.readableEnded) await once(far, "end");
    assert.deepEqual(
      Buffer.concat(received[i]!),
      Buffer.concat(sent[i]!.map((bytes, at) => bytes.subarray(0, bytes.length - (at % 7)))),
    );
  }
});
