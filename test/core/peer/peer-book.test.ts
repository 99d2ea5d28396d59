import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { loadProfile } from "#config/profile-file.ts";
import type { Input } from "#core/input/input.ts";
import { OwnNews } from "#core/peer/own-news.ts";
import { PEERS_MAX } from "#core/peer/peer-book.ts";
import type { PeerNews, PeerReported } from "#core/request/peer-news.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import { chain, request } from "../state.ts";

const ENDPOINTS = ["a", "b", "c"];

function router(profile = "gnomon"): Router {
  const made = new Router({
    seed: 1,
    profiles: { default: loadProfile(profile).spec },
    defaultProfile: "default",
    index: new ApproximateIndex(),
    blockTokens: 16,
    staleAfterMicros: 1_000_000,
  });
  for (const id of ENDPOINTS) {
    const endpoint = { id, models: [], labels: {}, kvCapacityTokens: 16_000, concurrencyMax: 8 };
    made.accept({ kind: "endpoint-joined", at: 0, endpoint });
  }
  return made;
}

/** A router that reports what it does, as a host would let it. */
class Reporting {
  readonly router = router();
  readonly news = new OwnNews();
  readonly name: string;
  readonly epoch: number;
  #sequence = 0;

  constructor(name: string, epoch = 1) {
    this.name = name;
    this.epoch = epoch;
  }

  accept(input: Input): void {
    this.news.follow(input, this.router.accept(input));
  }

  report(at: number): PeerReported {
    return this.#reported(at, this.news.take());
  }

  snapshot(at: number): PeerReported {
    this.news.take();
    return { ...this.#reported(at, this.news.snapshot()), snapshot: true };
  }

  #reported(at: number, news: readonly PeerNews[]): PeerReported {
    return { kind: "peer-reported", at, peer: this.name, epoch: this.epoch, sequence: ++this.#sequence, news };
  }
}

const accounts = (of: Router, at: number) =>
  of.endpointRows(at).map((row) => ({
    id: row.id,
    inFlight: row.requestsInFlight,
    queued: row.prefillTokensQueued,
    decode: row.decodeTokens,
    prompt: row.promptTokensInFlight,
  }));

/** Of up to 80 steps each, all of which are looked at. */
const RUNS = { numRuns: 40 };
const nothing = ENDPOINTS.map((id) => ({ id, inFlight: 0, queued: 0, decode: 0, prompt: 0 }));

/** What one request does next, as numbers: which request, and what. */
const steps = fc.array(fc.tuple(fc.nat(11), fc.nat(5), fc.nat(6)), { minLength: 1, maxLength: 80 });

/** Lets the steps happen at the router, in an order that a gateway may see, and calls back after each. */
function play(
  at: Reporting,
  script: readonly (readonly [number, number, number])[],
  after: (at: number) => void,
): void {
  const state = new Map<string, "charged" | "begun" | "waiting">();
  let clock = 1;
  for (const [which, what, blocks] of script) {
    const id = `r${which}`;
    clock++;
    const now = state.get(id);
    if (now === undefined) {
      at.accept({ kind: "request-arrived", at: clock, request: request({ id, blocks: chain(which % 3, 1 + blocks) }) });
      state.set(id, "charged");
    } else if (now === "waiting") {
      at.accept({ kind: "request-retried", at: clock, requestId: id });
      state.set(id, "charged");
    } else if (what === 0 && now === "charged" && (at.router.hasTaker(clock, id) || blocks > 3)) {
      at.accept({ kind: "attempt-failed", at: clock, requestId: id, fault: "connect" });
      state.set(id, at.router.hasTaker(clock, id) ? "waiting" : "begun");
      if (state.get(id) === "begun") finish(at, clock, id, "failed", state);
    } else if (what <= 2 && now === "charged") {
      at.accept({ kind: "first-token", at: clock, requestId: id });
      state.set(id, "begun");
    } else if (what === 3) {
      at.accept({ kind: "progress", at: clock, requestId: id, outputTokens: 2 + blocks });
    } else finish(at, clock, id, now === "begun" && blocks < 4 ? "ok" : "aborted", state);
    after(clock);
  }
}

function finish(
  at: Reporting,
  clock: number,
  requestId: string,
  outcome: "ok" | "aborted" | "failed",
  state: Map<string, unknown>,
): void {
  const counts = { promptTokens: 20, cachedTokens: 0, outputTokens: outcome === "ok" ? 7 : undefined };
  at.accept({ kind: "request-finished", at: clock, requestId, outcome, ...counts });
  state.delete(requestId);
}

test("one that gets every report has the peer's accounts as its own, at any time", () => {
  fc.assert(
    fc.property(steps, (script) => {
      const peer = new Reporting("p");
      const here = router();
      play(peer, script, (at) => {
        here.accept(peer.report(at));
        assert.deepEqual(accounts(here, at), accounts(peer.router, at));
        assert.equal(here.peers.openCharges, peer.router.openCharges);
      });
      assert.equal(here.peers.counts.strayNews, 0);
      assert.equal(here.peers.lacksSnapshot("p"), false);
    }),
    RUNS,
  );
});

test("it believes of every endpoint that it holds what the peer believes of it", () => {
  fc.assert(
    fc.property(steps, (script) => {
      const peer = new Reporting("p");
      const here = router();
      play(peer, script, (at) => here.accept(peer.report(at)));
      const held = (of: Router) => of.endpointRows(1e6).map(({ indexBlocks }) => indexBlocks);
      assert.deepEqual(held(here), held(peer.router));
    }),
  );
});

test("reports that are lost, repeated or late do no harm that outlives the next snapshot", () => {
  const fates = fc.array(fc.constantFrom("taken", "lost", "twice", "late"), { minLength: 80, maxLength: 80 });
  fc.assert(
    fc.property(steps, fates, (script, fate) => {
      const peer = new Reporting("p");
      const here = router();
      const late: PeerReported[] = [];
      let count = 0;
      play(peer, script, (at) => {
        const report = peer.report(at);
        const what = fate[count++]!;
        if (what === "late") late.push(report);
        else if (what !== "lost") here.accept(report);
        if (what === "twice") here.accept(report);
        if (what === "taken") for (const old of late.splice(0)) here.accept({ ...old, at });
      });
      here.accept(peer.snapshot(1_000));
      for (const old of late) here.accept({ ...old, at: 1_001 });
      assert.deepEqual(accounts(here, 1_001), accounts(peer.router, 1_001));
      assert.equal(here.peers.lacksSnapshot("p"), false);
    }),
  );
});

test("when a peer leaves nothing of it is left, and the charges of others and our own stay", () => {
  fc.assert(
    fc.property(steps, steps, steps, (mine, first, second) => {
      const here = new Reporting("me");
      const alone = router();
      const [p, q] = [new Reporting("p"), new Reporting("q")];
      play(here, mine, () => {});
      play(p, first, (at) => here.accept({ ...p.report(at), at: 100 + at }));
      play(q, second, (at) => {
        here.accept({ ...q.report(at), at: 200 + at });
        alone.accept({ ...q.report(at), at: 200 + at });
      });
      const before = here.router.openCharges;
      here.accept({ kind: "peer-left", at: 300, peer: "p" });
      assert.equal(here.router.peers.requestsOf("p"), 0);
      assert.equal(here.router.openCharges, before);
      assert.equal(here.router.peers.openCharges, q.router.openCharges);
      here.accept({ kind: "peer-left", at: 301, peer: "q" });
      assert.equal(here.router.peers.openCharges, 0);
      for (const row of here.router.endpointRows(302)) assert.equal(row.peerRequestsInFlight, 0);
    }),
    RUNS,
  );
});

test("all is 0 when all peers have left and nothing is in flight here", () => {
  const peer = new Reporting("p");
  const here = router();
  for (let i = 0; i < 20; i++) peer.accept({ kind: "request-arrived", at: i, request: request({ id: `r${i}` }) });
  here.accept(peer.report(20));
  assert.equal(here.peers.requestsOf("p"), 20);
  here.accept({ kind: "peer-left", at: 21, peer: "p" });
  assert.deepEqual(accounts(here, 22), nothing);
});

test("a peer that began anew has lost what it had, and reports of its earlier life are ignored", () => {
  const [before, after] = [new Reporting("p", 1), new Reporting("p", 2)];
  const here = router();
  before.accept({ kind: "request-arrived", at: 1, request: request({ id: "old" }) });
  after.accept({ kind: "request-arrived", at: 2, request: request({ id: "new" }) });
  here.accept(before.report(1));
  here.accept(after.report(2));
  before.accept({ kind: "request-arrived", at: 3, request: request({ id: "older" }) });
  here.accept(before.report(3));
  assert.equal(here.peers.requestsOf("p"), 1);
  assert.equal(here.peers.counts.ignoredReports, 1);
  assert.deepEqual(accounts(here, 4), accounts(after.router, 4));
});

test("a session goes where a peer sent it", () => {
  const peer = new Reporting("p");
  const here = router("sticky");
  peer.accept({ kind: "endpoint-cordoned", at: 1, endpoint: "a" });
  peer.accept({ kind: "endpoint-cordoned", at: 1, endpoint: "b" });
  peer.accept({ kind: "request-arrived", at: 2, request: request({ id: "first", session: "s" }) });
  here.accept(peer.report(2));
  const next = here.accept({ kind: "request-arrived", at: 3, request: request({ id: "next", session: "s" }) });
  assert.equal(next.kind === "routed" && next.endpoint, "c");
});

test("an endpoint whose breaker a peer opened is left alone for that pause, unless all seem to fail there", () => {
  const here = router();
  const open = (endpoint: string): PeerNews => ({ kind: "breaker", endpoint, state: "open", pauseMicros: 1_000 });
  const report = (sequence: number, ...news: PeerNews[]): Input => ({
    kind: "peer-reported",
    at: 10,
    peer: "p",
    epoch: 1,
    sequence,
    news,
  });
  here.accept(report(1, open("a")));
  assert.deepEqual(states(here, 11), ["open", "closed", "closed"]);
  here.accept(report(2, open("b")));
  assert.deepEqual(states(here, 11), ["open", "closed", "closed"]);
  assert.equal(here.peers.counts.doubtedBreakers, 1);
  assert.deepEqual(states(here, 1_010), ["closed", "closed", "closed"]);
  here.accept(report(3, { kind: "breaker", endpoint: "b", state: "closed", pauseMicros: 0 }, open("a")));
  here.accept({ kind: "peer-left", at: 12, peer: "p" });
  assert.deepEqual(states(here, 13), ["closed", "closed", "closed"]);
});

test("half of all endpoints may fail at once; a peer to which more of them fail is doubted", () => {
  const here = router();
  const endpoint = { id: "d", models: [], labels: {}, kvCapacityTokens: 16_000, concurrencyMax: 8 };
  here.accept({ kind: "endpoint-joined", at: 0, endpoint });
  const report = (sequence: number, id: string): Input => {
    const news = [{ kind: "breaker", endpoint: id, state: "open", pauseMicros: 1_000 } as const];
    return { kind: "peer-reported", at: 10, peer: "p", epoch: 1, sequence, news };
  };
  here.accept(report(1, "a"));
  here.accept(report(2, "b"));
  assert.deepEqual(states(here, 11), ["open", "open", "closed", "closed"]);
  assert.equal(here.peers.counts.doubtedBreakers, 0);
  here.accept(report(3, "c"));
  assert.deepEqual(states(here, 11), ["open", "open", "closed", "closed"]);
  assert.equal(here.peers.counts.doubtedBreakers, 1);
});

test("what a peer's request computed before it was broken off stays where it is; what it did not begin does not", () => {
  for (const begins of [true, false]) {
    const peer = new Reporting("p");
    const here = router();
    peer.accept({ kind: "request-arrived", at: 1, request: request({ id: "r", blocks: chain(1, 5) }) });
    if (begins) peer.accept({ kind: "first-token", at: 2, requestId: "r" });
    here.accept(peer.report(2));
    const counts = { promptTokens: 80, cachedTokens: 0, outputTokens: undefined };
    peer.accept({ kind: "request-finished", at: 3, requestId: "r", outcome: "aborted", ...counts });
    here.accept(peer.report(3));
    const held = here.endpointRows(4).reduce((sum, { indexBlocks }) => sum + indexBlocks, 0);
    assert.equal(held, begins ? 5 : 0);
  }
});

const states = (of: Router, at: number) => of.endpointRows(at).map(({ breaker }) => breaker);

test("peers beyond the bound are ignored and counted", () => {
  const here = router();
  for (let i = 0; i <= PEERS_MAX; i++) here.accept(new Reporting(`p${i}`).report(i));
  assert.equal(here.peers.peers.length, PEERS_MAX);
  assert.equal(here.peers.counts.ignoredReports, 1);
});

test("a breaker's news have its pause while it is open, and none once it is closed", () => {
  const news = new OwnNews();
  news.breaker("a", { state: "open", fault: "draining", pauseMicros: 7_000 });
  news.breaker("a", { state: "closed" });
  assert.deepEqual(news.take(), [
    { kind: "breaker", endpoint: "a", state: "open", pauseMicros: 7_000 },
    { kind: "breaker", endpoint: "a", state: "closed", pauseMicros: 0 },
  ]);
});
