import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { loadProfile } from "#config/profile-file.ts";
import { engineDefaults } from "#engine/config.ts";
import { Intake } from "#live/base/intake.ts";
import { TraceFeed } from "#live/recorder/trace-feed.ts";
import { ShadowHost } from "#shadow/thread/host.ts";
import { routerOf } from "#shadow/recorded/replay.ts";
import { drawTraffic } from "../../core/traffic.ts";
import { HEADER } from "../../trace/trace-samples.ts";

const BUFFER_BYTES_MAX = 8_000_000;
const { spec } = loadProfile("gnomon");
const header = {
  ...HEADER,
  router: { ...HEADER.router, profiles: { gnomon: spec }, defaultProfile: "gnomon", staleAfterMicros: 50_000 },
};
const run = { id: "r", startWallMicros: 0, router: header.router, hash: header.hash, endpoints: [] };
const work = {
  engine: engineDefaults(),
  candidates: [{ name: "round-robin", spec: loadProfile("round-robin").spec }],
  why: { name: "gnomon", spec },
  intervalMillis: 200,
  predictMillis: 60_000,
  windowRequests: 500,
  requestsMin: 20,
  calibrate: { every: 1, requestsMax: 500 },
  cpuShareMax: 1,
  scrapeMillis: 1000,
};

/** A router whose intake a shadow listens to, with traffic of one seed. */
function rig(script: URL | undefined, bufferBytesMax = BUFFER_BYTES_MAX) {
  const log: string[] = [];
  const router = routerOf(header);
  const intake = new Intake(router);
  const host: ShadowHost = new ShadowHost({
    work,
    heapMegabytesMax: 256,
    taken: (bytes) => feed.taken(bytes),
    predicted: () => {},
    restarted: () => feed.restart(),
    failed: (detail, done) => log.push(`${detail}; ${done}`),
    ...(script === undefined ? {} : { script }),
  });
  const feed: TraceFeed = new TraceFeed({ run, bufferBytesMax, candidatesMax: 0, send: (lines) => host.send(lines) });
  intake.listen(feed);
  const close = async () => {
    feed.stop();
    await host.close();
  };
  return { router, intake, host, feed, log, close };
}

/** Gives a router's whole traffic to the intake, as a gateway would. */
function traffic(intake: Intake, seed: number): number {
  const steps = drawTraffic(routerOf(header), seed, 400);
  let decisions = 0;
  for (const { input } of steps) if (intake.accept(input) !== undefined) decisions++;
  return decisions;
}

async function until(condition: () => boolean, what: string): Promise<void> {
  for (let waited = 0; !condition(); waited += 20) {
    assert.ok(waited < 120_000, what);
    await sleep(20);
  }
}

test("the shadow replays every decision of a running router identically, and evaluates its candidates", async () => {
  const { intake, host, feed, close } = rig(undefined);
  try {
    const decisions = traffic(intake, 21);
    await until(() => host.status().parity.decisions === decisions, "all decisions are replayed");
    assert.deepEqual(host.status().parity, { decisions, differences: 0, unverifiable: 0 });
    await until(() => host.status().evaluated !== undefined, "an evaluation");
    const names = host.status().evaluated?.answer.candidates.map(({ name }) => name);
    assert.deepEqual(names?.toSorted(), ["gnomon", "round-robin"]);
    await until(() => feed.bufferedBytes === 0, "nothing is held when all is taken");
    assert.equal(feed.dropped, 0);
    await until(() => host.status().fit !== undefined, "an attempt to fit");
    // Drawn traffic has no engines behind it.
    assert.notEqual(host.status().fit?.report.outcome, "accepted");
    assert.equal(host.status().engine.stepTime, host.status().fit?.report.engine.stepTime);
  } finally {
    await close();
  }
});

test("the latest requests are explained after an evaluation", async () => {
  const { intake, host, log, close } = rig(undefined);
  try {
    traffic(intake, 24);
    await until(() => host.status().why !== undefined || log.length > 0, "an explanation");
    assert.deepEqual(log, []);
    const { inForce, sentences, parts } = host.status().why!;
    assert.equal(inForce, "gnomon");
    assert.equal(sentences.length, 2);
    assert.ok(parts.length > 0);
  } finally {
    await close();
  }
});

test("a shadow that dies takes nothing with it: the router goes on, the death is reported and counted, a new one starts", async () => {
  const { intake, host, log, close } = rig(new URL("./dying.worker.ts", import.meta.url));
  try {
    assert.ok(traffic(intake, 22) > 0);
    await until(() => host.status().restarts >= 1, "the death is noticed");
    assert.match(log[0] ?? "", /the shadow broke/);
    assert.equal(host.status().state, "crashed");
    assert.doesNotThrow(() => host.send(Buffer.from("what comes while nobody is there\n")));
    await until(() => host.status().restarts >= 2, "the next one is started and dies too");
  } finally {
    await close();
  }
});

test("an engine that was learnt outlives the thread that learnt it, and attempts are counted across its deaths", async () => {
  const { host, close } = rig(new URL("./fitting.worker.ts", import.meta.url));
  try {
    await until(() => host.status().restarts >= 1, "the thread tells a fit and dies of the header");
    const { accepted, engine, fits } = host.status();
    assert.equal(fits.accepted, 1);
    assert.ok(accepted !== undefined && accepted.ageMillis >= 0);
    await until(() => host.status().fits.accepted === 2, "the next one tells what it was started with");
    const { stepTime } = host.status().engine;
    assert.ok(stepTime.kind === "coefficients" && engine.stepTime.kind === "coefficients");
    assert.equal(stepTime.baseMicros, 1 + engine.stepTime.baseMicros);
    const [before, after] = [accepted, host.status().accepted].map((one) => one?.report.residuals?.levelError);
    assert.deepEqual([before, after], [0.1, 0.2]);
  } finally {
    await close();
  }
});

test("a shadow that never answers fills its buffer and no more: records are dropped and counted, decisions are made", async () => {
  const { router, intake, feed, host, close } = rig(new URL("./deaf.worker.ts", import.meta.url), 65_536);
  try {
    const decisions = traffic(intake, 23);
    assert.ok(decisions > 50);
    await until(() => feed.dropped > 0 && host.status().lagMillis > 0, "drops and lag are seen");
    assert.ok(feed.bufferedBytes <= 2 * 65_536, `${feed.bufferedBytes} bytes held`);
    assert.equal(router.openCharges, 0);
  } finally {
    await close();
  }
});
