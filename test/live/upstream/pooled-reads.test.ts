import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, type Socket, connect, createServer } from "node:net";
import { test } from "node:test";
import * as fc from "fast-check";
import { POOLED_READS } from "#live/upstream/pooled-reads.ts";

/** Sends what it is given in turns over all connections at once, and ends them. */
async function exchange(texts: readonly (readonly Buffer[])[]): Promise<Buffer[][]> {
  const server = createServer((socket) => socket.setNoDelay(true)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const pairs: { readonly far: Socket; readonly pieces: Buffer[]; readonly ended: Promise<unknown> }[] = [];
  for (let i = 0; i < texts.length; i++) {
    const accepted = once(server, "connection");
    const near = connect({ port, host: "127.0.0.1", onread: POOLED_READS });
    const pieces: Buffer[] = [];
    near.on("readable", () => {
      for (let piece = near.read() as Buffer | null; piece !== null; piece = near.read() as Buffer | null)
        pieces.push(piece);
    });
    pairs.push({ far: ((await accepted) as [Socket])[0], pieces, ended: once(near, "end") });
  }
  for (let turn = 0; turn < Math.max(...texts.map(({ length }) => length)); turn++) {
    for (const [i, { far }] of pairs.entries()) if (texts[i]![turn] !== undefined) far.write(texts[i]![turn]!);
    await new Promise((resolve) => setImmediate(resolve));
  }
  for (const { far } of pairs) far.end();
  await Promise.all(pairs.map(({ ended }) => ended));
  server.close();
  return pairs.map(({ pieces }) => pieces);
}

test("several connections get what was sent to each, and a piece that is kept never changes", async () => {
  const piece = fc.tuple(
    fc.oneof(fc.integer({ min: 1, max: 600 }), fc.integer({ min: 1_000, max: 150_000 })),
    fc.nat(255),
  );
  const texts = fc.array(
    fc.array(piece, { minLength: 1, maxLength: 12 }).map((all) => all.map(([bytes, of]) => Buffer.alloc(bytes, of))),
    { minLength: 1, maxLength: 4 },
  );
  await fc.assert(
    fc.asyncProperty(texts, async (sent) => {
      const received = await exchange(sent);
      for (const [i, pieces] of received.entries()) assert.deepEqual(Buffer.concat(pieces), Buffer.concat(sent[i]!));
    }),
    { numRuns: 25 },
  );
});

test("one that does not read holds its sender up as every socket does", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "connection");
  const near = connect({ port: (server.address() as AddressInfo).port, host: "127.0.0.1", onread: POOLED_READS });
  const [far] = (await accepted) as [Socket];
  const bytes = 64 << 20;
  far.end(Buffer.alloc(bytes, 7));
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.ok(near.readableLength < 1 << 20, `${near.readableLength} bytes are held`);
  assert.ok(far.writableLength > 0);
  let received = 0;
  for await (const piece of near) received += (piece as Buffer).length;
  assert.equal(received, bytes);
  server.close();
});
