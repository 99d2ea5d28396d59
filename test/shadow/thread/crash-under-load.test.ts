import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { engineDefaults } from "#engine/config.ts";
import { TraceFeed } from "#live/recorder/trace-feed.ts";
import { ShadowHost } from "#shadow/thread/host.ts";
import { ask, CHAT, startRig } from "../../live/gateway/rig.ts";
import { event, type Reply, roleChunk, STREAM_HEAD, tokenChunk } from "../../live/gateway/stub-engine.ts";
import { HEADER } from "../../trace/trace-samples.ts";

const IN_FLIGHT = 16;
const DEATHS = 2;
const TOKENS = 6;

const stream: Reply = (_request, socket) => {
  socket.write(STREAM_HEAD + roleChunk());
  let left = TOKENS;
  const timer = setInterval(() => {
    if (left-- > 0 && socket.writable) return void socket.write(tokenChunk("t"));
    clearInterval(timer);
    if (socket.writable) socket.write(`${event("[DONE]")}0\r\n\r\n`);
  }, 3);
};

const DEATHS_BY = {
  "an exception": new URL("./dying.worker.ts", import.meta.url),
  "want of memory": new URL("./hoarding.worker.ts", import.meta.url),
};

for (const [cause, script] of Object.entries(DEATHS_BY)) {
  test(`clients see nothing of a shadow that dies of ${cause} in the middle of their streams, again and again`, async () => {
    const rig = await startRig([stream, stream]);
    const host: ShadowHost = new ShadowHost({
      work: {
        engine: engineDefaults(),
        calibrate: { every: 1, requestsMax: 500 },
        candidates: [],
        intervalMillis: 1000,
        predictMillis: 60_000,
        windowRequests: 500,
        requestsMin: 20,
        cpuShareMax: 1,
        scrapeMillis: 1000,
      },
      heapMegabytesMax: 64,
      taken: (bytes) => feed.taken(bytes),
      predicted: () => {},
      restarted: () => feed.restart(),
      failed: () => {},
      script,
    });
    const run = { id: "r", startWallMicros: 0, router: HEADER.router, hash: HEADER.hash, endpoints: [] };
    const feed: TraceFeed = new TraceFeed({
      run,
      bufferBytesMax: 1_000_000,
      candidatesMax: 0,
      send: (lines) => host.send(lines),
    });
    rig.intake.listen(feed);
    let answers = 0;
    const client = async (): Promise<void> => {
      while (host.status().restarts < DEATHS || answers <= DEATHS * IN_FLIGHT) {
        const { status, body, cut } = await ask(rig.url, { ...CHAT, stream: true });
        assert.deepEqual([status, cut], [200, false]);
        assert.equal(body.split('"content":"t"').length - 1, TOKENS);
        assert.match(body, /data: \[DONE\]\s*$/);
        answers++;
      }
    };
    try {
      const deadline = sleep(120_000, undefined, { ref: false }).then(() =>
        assert.fail("the shadow dies and is started"),
      );
      await Promise.race([deadline, Promise.all(Array.from({ length: IN_FLIGHT }, client))]);
      assert.deepEqual(rig.retried, []);
    } finally {
      feed.stop();
      await host.close();
      await rig.close();
    }
  });
}
