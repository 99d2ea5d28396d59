import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ADMIT_ALL } from "#core/admission/admission-spec.ts";
import type { Decision } from "#core/input/decision.ts";
import type { Input } from "#core/input/input.ts";
import type { PeerNews } from "#core/request/peer-news.ts";
import { ReportDecoder, readHead } from "#live/share/report-decoder.ts";
import { ReportEncoder } from "#live/share/report-encoder.ts";
import { WireError } from "#trace/codec/byte-reader.ts";
import { chain } from "../../core/state.ts";
import { peerNews } from "../../trace/trace-samples.ts";
import { MemoryStream, newRouter, replica, until } from "./memory-fleet.ts";

test("a report reads back as it was, and bytes that are no report are refused", () => {
  fc.assert(
    fc.property(fc.array(peerNews, { maxLength: 6 }), fc.nat(1e12), (news, epoch) => {
      const encoder = new ReportEncoder();
      const decoder = new ReportDecoder();
      const head = { kind: "news", fingerprint: 9, replica: "r", epoch, sequence: 3 } as const;
      for (let i = 0; i < 2; i++) {
        const bytes = Buffer.from(encoder.encode({ ...head, news }));
        const { head: back, rest } = readHead(bytes);
        assert.deepEqual({ ...back, news: decoder.news(rest) }, { ...head, news: news.map(asSent) });
      }
      assert.equal(decoder.chainsUnknown, 0);
    }),
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      try {
        new ReportDecoder().news(readHead(Buffer.from(bytes)).rest);
      } catch (error) {
        assert.ok(error instanceof WireError, String(error));
      }
    }),
    { numRuns: 500 },
  );
});

test("of a report whose prompts go on and on behind what was sent before, as many blocks are read as fit into memory", () => {
  const whole = chain(1, 100_000);
  const held: PeerNews = { kind: "held", endpoint: "a", session: undefined, blocks: whole };
  const head = { kind: "news", fingerprint: 9, replica: "r", epoch: 1, sequence: 3 } as const;
  const bytes = Buffer.from(new ReportEncoder().encode({ ...head, news: Array.from({ length: 100 }, () => held) }));
  assert.ok(bytes.length < 4_000_000);
  const decoder = new ReportDecoder();
  const news = decoder.news(readHead(bytes).rest);
  const blocks = news.reduce((sum, one) => sum + (one.kind === "held" ? one.blocks.length : 0), 0);
  assert.equal(blocks, 20 * 100_000);
  assert.equal(decoder.chainsUnknown, 80);
  const again = new ReportEncoder().encode({ ...head, news: [held] });
  assert.equal(decoder.news(readHead(Buffer.from(again)).rest).length, 1);
  assert.equal(decoder.chainsUnknown, 80, "the next report is read again");
  assert.throws(() => readHead(Buffer.alloc(4_194_305)), WireError);
});

test("a report of a request 0, which no trace could hold, is refused", () => {
  const asRead = (news: PeerNews) => {
    const head = { kind: "news", fingerprint: 9, replica: "r", epoch: 1, sequence: 3 } as const;
    return new ReportDecoder().news(readHead(Buffer.from(new ReportEncoder().encode({ ...head, news: [news] }))).rest);
  };
  assert.deepEqual(asRead({ kind: "failed", request: 1 }), [{ kind: "failed", request: 1 }]);
  assert.throws(() => asRead({ kind: "failed", request: 0 }), WireError);
  assert.throws(() => asRead({ kind: "first-token", request: 0, ttftMicros: 5 }), WireError);
});

/** Counts of tokens are at least 1 on the way. */
function asSent(news: PeerNews): PeerNews {
  return news.kind === "charged" ? { ...news, newTokens: Math.max(1, news.newTokens) } : news;
}

test("of a conversation's next turn only the new blocks are sent", () => {
  const encoder = new ReportEncoder();
  const whole = chain(1, 200);
  const held = (length: number): PeerNews => {
    const blocks = { ...whole, hashes: whole.hashes.slice(0, 2 * length), length };
    return { kind: "held", endpoint: "a", session: undefined, blocks };
  };
  const size = (news: PeerNews) =>
    encoder.encode({ kind: "news", fingerprint: 1, replica: "r", epoch: 1, sequence: 1, news: [news] }).length;
  const first = size(held(190));
  assert.ok(first > 190 * 8);
  assert.ok(size(held(200)) < 10 * 8 + 40);
});

test("a replica knows of what another has in flight, and finds its prompts", async (t) => {
  const stream = new MemoryStream();
  const [one, two] = [replica(t, stream.link(), "one"), replica(t, stream.link(), "two")];
  void one.share.start();
  void two.share.start();
  const endpoint = one.arrive("r1", { blocks: chain(5, 40) });
  await until(() => two.intake.router.peers.openCharges === 1, "the charge is known");
  const row = two.intake.router.endpointRows(0).find(({ id }) => id === endpoint);
  assert.equal(row?.peerRequestsInFlight, 1);
  one.finish("r1");
  await until(() => two.intake.router.peers.openCharges === 0, "its end is known");
  assert.equal(two.arrive("r2", { blocks: chain(5, 40) }), endpoint);
  assert.equal(two.hits("r2"), 40 * 16);
  assert.ok(one.share.status().lagMillis !== undefined);
});

for (const [how, leaseMillis, leasesEnded] of [
  ["dies is forgotten with its charges as its lease ends", 200, 1],
  ["goes is forgotten with its charges at once", 3_600_000, 0],
] as const)
  test(`one that ${how}`, async (t) => {
    const stream = new MemoryStream();
    const link = stream.link();
    const ends = replica(t, link, "ends", { leaseMillis });
    const stays = replica(t, stream.link(), "stays", { leaseMillis });
    for (const one of [ends, stays]) void one.share.start();
    ends.arrive("r1");
    await until(() => stays.intake.router.peers.openCharges === 1, "it is known");
    if (leasesEnded > 0) link.cut();
    else await ends.share.stop();
    await until(() => stays.intake.router.peers.openCharges === 0, "it is forgotten");
    assert.ok(stays.share.counts.leasesEnded >= leasesEnded);
    if (leasesEnded === 0) assert.equal(stays.share.counts.leasesEnded, 0);
  });

test("charges stay while signs of life come, and after the last one as long as the lease: by a held clock", (t) => {
  const times = { aliveMillis: 20, leaseMillis: 1_000, snapshotMillis: 1e6 };
  t.mock.timers.enable({ apis: ["setInterval", "setTimeout"] });
  let millis = performance.now();
  t.mock.method(performance, "now", () => millis);
  const pass = (count: number): void => {
    for (let i = 0; i < count; i++) {
      millis++;
      t.mock.timers.tick(1);
    }
  };
  const stream = new MemoryStream();
  const link = stream.link();
  const dies = replica(t, link, "dies", times);
  const stays = replica(t, stream.link(), "stays", times);
  for (const one of [dies, stays]) void one.share.start();
  dies.arrive("r1");
  const known = () => [stays.intake.router.peers.openCharges, stays.share.counts.leasesEnded];
  pass(3 * times.leaseMillis);
  assert.deepEqual(known(), [1, 0], "it has nothing to report but that it is there");
  link.cut();
  pass(times.leaseMillis - times.aliveMillis);
  assert.deepEqual(known(), [1, 0], "the lease is not over");
  // Whose lease is over is looked at eight times in a lease.
  pass(times.aliveMillis + times.leaseMillis / 8 + 1);
  assert.deepEqual(known(), [0, 1], "the lease is over");
});

test("a replica that reads elsewhere than it writes finds out by its own reports, which do not come back: by a held clock", (t) => {
  const times = { aliveMillis: 20, leaseMillis: 1_000, snapshotMillis: 500 };
  t.mock.timers.enable({ apis: ["setInterval", "setTimeout"] });
  let millis = performance.now();
  t.mock.method(performance, "now", () => millis);
  const pass = (count: number): void => {
    for (let i = 0; i < count; i++) {
      millis++;
      t.mock.timers.tick(1);
    }
  };
  const stream = new MemoryStream();
  const link = stream.link();
  const one = replica(t, link, "one", times);
  void one.share.start();
  pass(5 * times.leaseMillis);
  assert.deepEqual(link.renewed, [], "all comes back");
  link.deafen();
  pass(times.leaseMillis);
  assert.deepEqual(link.renewed, []);
  pass(times.leaseMillis + times.snapshotMillis + 2 * times.aliveMillis);
  assert.deepEqual(link.renewed, ["what is sent does not come back"]);
  const { state, aloneWhy } = one.share.status();
  assert.deepEqual([state, aloneWhy], ["alone", "what is sent does not come back"]);
});

test("the log has why a server refuses, where the connection broke before, and that once", (t) => {
  const one = replica(t, new MemoryStream().link(), "one");
  void one.share.start();
  const refusals = [
    "no connection",
    "NOAUTH Authentication required.",
    "NOAUTH Authentication required.",
    "no connection",
  ];
  for (const why of refusals) one.share.lost(why);
  assert.deepEqual(
    one.events.map(({ detail }) => detail),
    ["memory: no connection", "memory: NOAUTH Authentication required."],
  );
  assert.equal(one.share.status().aloneWhy, "NOAUTH Authentication required.");
  assert.equal(one.share.counts.losses, 1);
});

test("one that comes later knows the prompts that were sent before, and what is in flight", async (t) => {
  const stream = new MemoryStream();
  const one = replica(t, stream.link(), "one");
  void one.share.start();
  one.arrive("r1", { blocks: chain(6, 30) });
  one.arrive("r2", { blocks: chain(7, 30) });
  one.finish("r2");
  await until(() => stream.reports.length > 1, "it was sent");
  const late = replica(t, stream.link(), "late");
  void late.share.start();
  await until(() => late.intake.router.peers.openCharges === 1, "the snapshot came");
  late.arrive("r4", { blocks: chain(7, 30) });
  assert.equal(late.hits("r4"), 30 * 16);
  assert.deepEqual(late.intake.router.peers.peers, ["one"]);
});

test("while the link is away each goes on by its own view and reports it once; then they catch up", async (t) => {
  const stream = new MemoryStream();
  const [one, two] = [replica(t, stream.link(), "one"), replica(t, stream.link(), "two")];
  void one.share.start();
  void two.share.start();
  one.arrive("before");
  await until(() => two.intake.router.peers.openCharges === 1, "it is known");
  stream.goAway();
  stream.goAway();
  one.arrive("meanwhile", { blocks: chain(8, 20) });
  one.finish("before");
  await until(() => two.intake.router.peers.openCharges === 0, "the lease ends");
  assert.equal(one.share.status().state, "alone");
  assert.deepEqual(
    one.events.map(({ kind }) => kind),
    ["sharing-lost"],
  );
  stream.comeBack();
  await until(() => two.intake.router.peers.openCharges === 1, "they share again");
  assert.equal(two.intake.router.peers.requestsOf("one"), 1);
  assert.deepEqual(
    one.events.map(({ kind }) => kind),
    ["sharing-lost", "sharing-recovered"],
  );
  assert.ok(one.share.counts.newsDropped > 0);
});

test("what was let in while the link was away, and is over, counts in others' limits once it is back, each request once", async (t) => {
  const day = {
    type: "usage-quota",
    per: "user",
    requestsMax: 10,
    outputTokensMax: 1_000,
    outputTokensAssumed: 100,
    byTenant: {},
    windowMicros: 86_400_000_000,
    onLimit: "reject",
  } as const;
  const bucket = {
    bucketTokens: 50,
    refillPerSecond: 1e-9,
    cost: "requests",
    per: "tenant",
    onEmpty: "reject",
  } as const;
  const held = { type: "hard-cap", requestsMax: 9, onLimit: "reject", retryMicros: 1 } as const;
  const admission = { ...ADMIT_ALL, limits: { day, bucket: { type: "token-bucket", ...bucket }, held } } as const;
  const stream = new MemoryStream();
  const [one, two] = [
    replica(t, stream.link(), "one", { admission }),
    replica(t, stream.link(), "two", { admission }),
  ] as const;
  void one.share.start();
  void two.share.start();
  const asked = { tenant: "t", user: "u" };
  one.arrive("before", asked);
  await until(() => two.intake.router.peers.openCharges === 1, "it is known");
  stream.goAway();
  for (const id of ["r1", "r2", "r3"]) {
    one.arrive(id, asked);
    one.finish(id);
  }
  one.arrive("still-there", asked);
  one.finish("before");
  await until(() => one.share.counts.newsDropped > 0, "news are dropped");
  stream.comeBack();
  const used = () => {
    const rows = [...two.intake.router.admission.limits].flatMap(([name, limit]) =>
      limit.uses(performance.now() * 1000).map(({ of, used: count }) => `${name} ${of} ${Math.round(count)}`),
    );
    return rows.join(", ");
  };
  // Of "before" nobody knows how it ended: it stays what it took.
  const expected = "day requests 5, day output-tokens 215, bucket requests 5, held requests 1";
  await until(() => used() === expected, "all five count");
  const reports = one.share.counts.reportsSent;
  await until(() => one.share.counts.reportsSent > reports + 3, "snapshots came");
  assert.equal(used(), expected);
  one.finish("still-there");
  await until(() => used() === "day requests 5, day output-tokens 120, bucket requests 5, held requests 0", "its end");
});

test("replicas whose hashes mean something else are ignored, and that is reported once", async (t) => {
  const stream = new MemoryStream();
  const one = replica(t, stream.link(), "one");
  const other = replica(t, stream.link(), "other", { fingerprint: 8 });
  void one.share.start();
  void other.share.start();
  for (const id of ["r1", "r2"]) other.arrive(id);
  await until(() => one.share.counts.reportsForeign > 3, "reports came");
  assert.deepEqual(one.intake.router.peers.peers, []);
  assert.match(
    one.events.map(({ detail }) => detail).join(),
    /^replica other is not listened to: its prefix.secretEnv/,
  );
});

test("what a replica decided comes out the same from its inputs, the others' news among them", async (t) => {
  const stream = new MemoryStream();
  const [one, two] = [replica(t, stream.link(), "one"), replica(t, stream.link(), "two")];
  const inputs: Input[] = [];
  const decisions: (Decision | undefined)[] = [];
  two.intake.listen({
    accepted: (input, decision) => {
      inputs.push(input);
      decisions.push(decision);
    },
  });
  void one.share.start();
  void two.share.start();
  for (let i = 0; i < 60; i++) {
    (i % 2 === 0 ? one : two).arrive(`r${i}`, { blocks: chain(i % 7, 20) });
    if (i > 8) (i % 2 === 0 ? one : two).finish(`r${i - 8}`);
    if (i % 5 === 0) await new Promise((resolve) => setTimeout(resolve, 3));
  }
  const again = newRouter();
  let compared = 0;
  inputs.forEach((input, i) => {
    const decision = again.accept(input);
    if (decision === undefined) return;
    compared++;
    assert.deepEqual(decision, decisions[i]);
  });
  assert.equal(compared, 30);
  assert.ok(inputs.some(({ kind }) => kind === "peer-reported"));
});
