import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";

import { LONG_READ_BYTES, LongReads } from "#live/base/long-reads.ts";

/** Node reads so often from one connection before it goes on to the next. */
const READS_AT_ONCE = 32;
const READ_MICROS = 1_000;
/** The pass's own time, and the read that it ended with. */
const PASS_MICROS_MAX = 3_000 + READ_MICROS;

/** A connection that always has more, as libuv reads it. */
class Connection {
  destroyed = false;
  reads = 0;
  readonly bytes: number;
  readonly _handle = {
    reading: true,
    isStarted: true,
    readStart(): void {
      this.isStarted = true;
    },
    readStop(): void {
      this.isStarted = false;
    },
  };

  constructor(bytes = 65_536) {
    this.bytes = bytes;
  }
}

/** A loop whose time passes by the work on reads alone. */
class Loop {
  now = 1;
  readMicros = READ_MICROS;
  readonly reads = new LongReads(() => this.now);
  readonly connections: readonly Connection[];

  constructor(connections: readonly Connection[]) {
    this.connections = connections;
  }

  /** What one pass took. */
  async pass(): Promise<number> {
    const began = this.now;
    for (const connection of this.connections) {
      for (let left = READS_AT_ONCE; left > 0 && connection._handle.isStarted; left--) {
        connection.reads++;
        if (connection.bytes >= LONG_READ_BYTES) this.reads.came(connection);
        this.now += this.readMicros;
      }
    }
    const took = this.now - began;
    await setImmediate();
    return took;
  }
}

function connections(count: number): Connection[] {
  return Array.from({ length: count }, () => new Connection());
}

describe("long reads", () => {
  test("of many connections take no more of a pass than its time, once they are known", async () => {
    const loop = new Loop(connections(50));
    // What nobody knows of yet is read once.
    assert.ok((await loop.pass()) <= 3_000 + 50 * READ_MICROS);
    for (let passes = 0; passes < 400; passes++) {
      const took = await loop.pass();
      assert.ok(took <= PASS_MICROS_MAX, `pass ${passes}: ${took} us`);
    }
  });

  test("that were cheap and become dear take no more of the very next pass", async () => {
    const loop = new Loop(connections(50));
    loop.readMicros = 1;
    for (let passes = 0; passes < 10; passes++) assert.equal(await loop.pass(), 50 * READS_AT_ONCE);
    loop.readMicros = READ_MICROS;
    assert.ok((await loop.pass()) <= PASS_MICROS_MAX);
  });

  test("go on in turn: none waits for much longer than others", async () => {
    const loop = new Loop(connections(20));
    for (let passes = 0; passes < 400; passes++) await loop.pass();
    const reads = loop.connections.map((connection) => connection.reads);
    assert.ok(Math.min(...reads) > 20 && 2 * Math.min(...reads) >= Math.max(...reads), String(reads));
  });

  test("of one connection are as many as a pass has time for", async () => {
    const loop = new Loop(connections(1));
    for (let passes = 0; passes < 20; passes++) assert.ok((await loop.pass()) >= 3_000);
  });

  test("are all but those that bring little", async () => {
    const small = new Connection(LONG_READ_BYTES - 1);
    const loop = new Loop([...connections(5), small]);
    for (let passes = 0; passes < 20; passes++) await loop.pass();
    assert.equal(small.reads, 20 * READS_AT_ONCE);
  });

  test("do not begin again on a connection that somebody paused meanwhile, or that is closed", async () => {
    const [paused, closed, other] = [new Connection(), new Connection(), new Connection()];
    const loop = new Loop([paused, closed, other]);
    await loop.pass();
    paused._handle.isStarted = paused._handle.reading = false;
    closed.destroyed = true;
    closed._handle.isStarted = false;
    for (let passes = 0; passes < 20; passes++) await loop.pass();
    assert.deepEqual([paused._handle.isStarted, closed._handle.isStarted], [false, false]);
    assert.ok(other.reads > 20);
  });

  test("are over when nothing more comes: connections are read from, and no pass follows", async () => {
    const loop = new Loop(connections(3));
    await loop.pass();
    for (let passes = 0; passes < 6; passes++) await setImmediate();
    assert.ok(loop.connections.every((connection) => connection._handle.isStarted));
    assert.ok(!process.getActiveResourcesInfo().includes("Immediate"));
  });
});
