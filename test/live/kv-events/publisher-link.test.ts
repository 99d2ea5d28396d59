import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { decode } from "@msgpack/msgpack";
import type { LinkListener } from "#live/kv-events/link-listener.ts";
import { PublisherLink } from "#live/kv-events/publisher-link.ts";
import { FakePublisher } from "./fake-publisher.ts";

const TIMES = {
  replayMillis: 30_000,
  reconnectMillis: 60_000,
  retryMillis: 5,
  retryMillisMax: 20,
  heartbeatMillis: 60_000,
};

/** Writes down what a link reports, and lets tests wait for it. */
class Story implements LinkListener {
  readonly lines: string[] = [];
  #changed: (() => void) | undefined;

  alive(isComplete: boolean): void {
    this.#add(isComplete ? "alive, complete" : "alive, late");
  }

  message(payload: Uint8Array): void {
    const [, [event]] = decode(payload) as [number, unknown[]];
    if (event === "unreadable") throw new Error("unreadable");
    this.#add(String(event));
  }

  missed(messages: number): void {
    this.#add(`missed ${messages}`);
  }

  restarted(): void {
    this.#add("restarted");
  }

  lost(reason: string): void {
    this.#add(`lost: ${reason}`);
  }

  until(line: string): Promise<void> {
    return this.when((lines) => lines.includes(line));
  }

  async when(isSo: (lines: readonly string[]) => boolean): Promise<void> {
    while (!isSo(this.lines)) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
  }

  #add(line: string): void {
    this.lines.push(line);
    this.#changed?.();
  }
}

function follow(
  t: TestContext,
  publisher: FakePublisher,
  { hasReplay = true, replayMillis = TIMES.replayMillis } = {},
): { story: Story; link: PublisherLink } {
  const story = new Story();
  const { publisher: address, replay } = publisher.addresses;
  const link = new PublisherLink(
    { publisher: address, replay: hasReplay ? replay : undefined, binds: false, topic: "" },
    story,
    { ...TIMES, replayMillis },
  );
  const running = link.run();
  t.after(async () => {
    link.stop();
    publisher.close();
    await running;
  });
  return { story, link };
}

test("what was published before is replayed first, then what comes follows in order, each message once", async (t) => {
  const publisher = await FakePublisher.start();
  for (const event of ["a", "b"]) await publisher.publish([event]);
  const { story, link } = follow(t, publisher);
  await story.until("b");
  await publisher.subscribed();
  for (const event of ["c", "d"]) await publisher.publish([event]);
  await story.until("d");
  assert.deepEqual(story.lines, ["alive, complete", "a", "b", "c", "d"]);
  assert.deepEqual([link.counts.messages, link.counts.gaps, link.counts.missed], [4, 0, 0]);
});

test("a publisher that has sent nothing yet is complete; one that kept too few of its messages is late", async (t) => {
  const fresh = follow(t, await FakePublisher.start());
  await fresh.story.until("alive, complete");
  const publisher = await FakePublisher.start();
  for (const event of ["a", "b", "c"]) await publisher.publish([event]);
  publisher.forget(1);
  const { story } = follow(t, publisher);
  await story.until("c");
  assert.deepEqual(story.lines, ["alive, late", "b", "c"]);
});

test("without a replay socket it is late, unless its first message comes", async (t) => {
  const publisher = await FakePublisher.start();
  const { story } = follow(t, publisher, { hasReplay: false });
  await story.until("alive, late");
  await publisher.subscribed();
  await publisher.publish(["a"]);
  await story.until("a");
  assert.deepEqual(story.lines, ["alive, late", "alive, complete", "a"]);
});

test("a gap is closed by a replay, before what comes after it", async (t) => {
  const publisher = await FakePublisher.start();
  const { story, link } = follow(t, publisher);
  await story.until("alive, complete");
  await publisher.subscribed();
  await publisher.publish(["a"]);
  for (const event of ["b", "c"]) await publisher.publish([event], true);
  await publisher.publish(["d"]);
  await story.until("d");
  assert.deepEqual(story.lines, ["alive, complete", "a", "b", "c", "d"]);
  assert.deepEqual([link.counts.gaps, link.counts.closed, link.counts.missed], [1, 1, 0]);
});

test("a gap that nothing closes is reported before what comes after it, and a deaf replay is not asked again at once", async (t) => {
  const publisher = await FakePublisher.start();
  const { story, link } = follow(t, publisher, { replayMillis: 200 });
  await story.until("alive, complete");
  await publisher.subscribed();
  publisher.isDeaf = true;
  for (const lost of [false, true, false, true, true, false]) await publisher.publish([lost ? "lost" : "m"], lost);
  await publisher.publish(["end"]);
  await story.until("end");
  assert.deepEqual(story.lines, ["alive, complete", "m", "missed 1", "m", "missed 2", "m", "end"]);
  assert.deepEqual([link.counts.gaps, link.counts.closed, link.counts.missed], [2, 0, 3]);
});

test("a publisher that takes the place of another is a restart, with however many messages it has sent", async (t) => {
  for (const sent of [0, 1, 2, 5]) {
    const first = await FakePublisher.start();
    const { story } = follow(t, first);
    await story.until("alive, complete");
    await first.subscribed();
    for (const event of ["a", "b"]) await first.publish([event]);
    await story.until("b");
    first.close();
    const second = await FakePublisher.start(first.addresses);
    t.after(() => second.close());
    for (let i = 0; i < sent; i++) await second.publish([`new ${i}`]);
    if (sent > 0) await story.until(`new ${sent - 1}`);
    else await story.when((lines) => lines.includes("restarted") || lines.lastIndexOf("alive, complete") > 0);
    await second.publish(["end"]);
    // Should it be connected to once more in between, the next message shows what is missing.
    const more = setInterval(() => void second.publish(["more"]), 20);
    await story.until("end");
    clearInterval(more);
    const after = story.lines.slice(3).filter((line) => line !== "lost: disconnected" && line !== "more");
    assert.ok(after[0] === "restarted" || after[0] === "alive, complete", after.join());
    assert.deepEqual(after.slice(1), [...Array.from({ length: sent }, (_, i) => `new ${i}`), "end"]);
  }
});

test("nobody there is asked again until somebody is; messages that cannot be read count as missed", async (t) => {
  const before = await FakePublisher.start();
  const { addresses } = before;
  before.close();
  const { story, link } = follow(t, before);
  const publisher = await FakePublisher.start(addresses);
  t.after(() => publisher.close());
  await story.until("alive, complete");
  await publisher.subscribed();
  await publisher.publish(["a"]);
  await publisher.publish(["unreadable"]);
  await publisher.publish(["b"]);
  await story.until("b");
  assert.deepEqual(story.lines, ["alive, complete", "a", "missed 1", "b"]);
  assert.equal(link.counts.undecodable, 1);
});
