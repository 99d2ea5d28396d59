import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "fast-check";

import { type ArrivingBody, type BodyCut, BodyRoom, type BodyRules, SLOW_MICROS_MAX } from "#live/http/body-room.ts";

const SECOND = 1_000_000;
const RULES: BodyRules = {
  bytesMax: 1_000,
  arrivingMax: 800,
  networkMax: 500,
  bytesPerSecondMin: 10,
  bytesPerSecondKept: 100,
};

/** A body as its request would keep it. */
interface Sent {
  readonly network: string;
  readonly body: ArrivingBody;
  taken: number;
  cutFor: BodyCut | undefined;
}

/** Requests over one room: what they hold, and in which order they came. */
class Requests {
  readonly room: BodyRoom;
  readonly sent: Sent[] = [];
  readonly whole: number[] = [];
  now = 0;
  stoodStillUntil = 0;

  constructor(rules: Partial<BodyRules> = {}) {
    this.room = new BodyRoom({ ...RULES, ...rules });
  }

  begin(network: string, bytes: number): boolean {
    if (!this.room.take(bytes, { network })) return false;
    const cut = (why: BodyCut): void => {
      one.cutFor = why;
      this.#end(one);
    };
    const one: Sent = {
      network,
      body: this.room.watch(network, bytes, this.now, cut),
      taken: bytes,
      cutFor: undefined,
    };
    this.sent.push(one);
    return true;
  }

  /** The request of a body that finds no room is refused, and ends. */
  more(one: Sent, bytes: number): boolean {
    const took = this.room.take(bytes, one, one.body);
    if (took) one.taken += bytes;
    else this.#end(one);
    return took;
  }

  /** It is served from now on. */
  complete(one: Sent): void {
    this.room.leave(one.body);
    this.whole.push(one.taken);
    this.#remove(one);
  }

  pass(micros: number): void {
    this.now += micros;
    for (const { body } of this.sent.slice()) this.room.look(body, this.now, this.stoodStillUntil);
  }

  /** The program did not run, and read nothing. */
  standStill(micros: number): void {
    this.stoodStillUntil = this.now + micros;
    this.pass(micros);
  }

  of(network: string): number {
    return this.sent.reduce((sum, one) => sum + (one.network === network ? one.taken : 0), 0);
  }

  endAll(): void {
    for (const one of this.sent.slice()) this.#end(one);
    for (const bytes of this.whole.splice(0)) this.room.give(bytes);
  }

  #end(one: Sent): void {
    this.room.leave(one.body);
    this.room.give(one.taken);
    this.#remove(one);
  }

  #remove(one: Sent): void {
    this.sent.splice(this.sent.indexOf(one), 1);
  }
}

type Step =
  | { readonly kind: "begin"; readonly network: string; readonly bytes: number }
  | { readonly kind: "more"; readonly which: number; readonly bytes: number }
  | { readonly kind: "complete"; readonly which: number }
  | { readonly kind: "pass"; readonly micros: number };

const network = fc.constantFrom("a", "b", "c");
const bytes = fc.integer({ min: 1, max: 200 });
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant("begin" as const), network, bytes }),
  fc.record({ kind: fc.constant("more" as const), which: fc.nat(20), bytes }),
  fc.record({ kind: fc.constant("complete" as const), which: fc.nat(20) }),
  fc.record({ kind: fc.constant("pass" as const), micros: fc.integer({ min: 1, max: 4 * SECOND }) }),
);

describe("the room for bodies", () => {
  test("never holds more than it has, nor for long one network more than its share, and gives all back", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const requests = new Requests();
        for (const one of steps) {
          run(requests, one);
          const whole = requests.whole.reduce((sum, held) => sum + held, 0);
          const arriving = requests.sent.reduce((sum, { taken }) => sum + taken, 0);
          assert.equal(requests.room.bytes, whole + arriving);
          assert.equal(requests.room.arriving, requests.sent.length);
          assert.ok(requests.room.bytes <= RULES.bytesMax);
        }
        requests.pass(SECOND);
        requests.pass(SECOND);
        assertShares(requests);
        requests.endAll();
        assert.equal(requests.room.bytes, 0);
        assert.equal(requests.room.arriving, 0);
      }),
      { numRuns: 500 },
    );
  });

  test("has the oldest that comes slowly give way first, and none that comes fast of a network with less", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const requests = new Requests();
        for (const one of steps) {
          const before = requests.sent.map((sent) => ({ sent, slow: sent.body.rate < RULES.bytesPerSecondKept }));
          const held = new Map(["a", "b", "c"].map((name) => [name, requests.of(name)]));
          const asks = run(requests, one);
          const gone = before.filter(({ sent }) => sent.cutFor === "gave-way");
          if (one.kind === "pass") continue;
          if (asks === undefined) assert.equal(gone.length, 0, "nobody needed room");
          else if (gone.some(({ slow }) => !slow)) {
            const rivals = before.filter(({ sent }) => sent !== asks.sent);
            for (const { sent, slow } of rivals) assert.ok(!slow || sent.cutFor !== undefined, "a slow one stays");
            for (const { sent, slow } of gone) if (!slow) assert.ok(held.get(sent.network)! > asks.bytes);
          } else if (one.kind === "begin") {
            const slow = before.filter((rival) => rival.slow);
            assert.deepEqual(gone, slow.slice(0, gone.length), "the oldest of those that are slow");
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  test("is open to a newcomer, however many bodies one network holds short of their end, at whatever rate", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ bytes, pause: fc.nat(SECOND) }), { minLength: 30, maxLength: 60 }),
        // Half of what is not being served.
        fc.integer({ min: 1, max: 300 }),
        fc.boolean(),
        (held, size, wholeOnes) => {
          const requests = new Requests();
          // A third of the room is being served.
          if (wholeOnes && requests.begin("c", 300)) requests.complete(requests.sent[0]!);
          for (const one of held) {
            requests.begin("attacker", one.bytes);
            requests.pass(one.pause);
            for (const sent of requests.sent.slice()) if (requests.sent.includes(sent)) requests.more(sent, 1);
          }
          // In pieces, as a body comes.
          assert.ok(requests.begin("client", 1));
          const client = requests.sent.at(-1)!;
          for (let left = size - 1; left > 0; left -= 50)
            assert.ok(requests.more(client, Math.min(left, 50)), `${left} left`);
          assert.equal(client.cutFor, undefined);
        },
      ),
      { numRuns: 200 },
    );
  });

  test("cuts what comes below the least rate for a minute, and nothing that keeps to it", () => {
    const requests = new Requests();
    for (const from of ["a", "b"]) assert.ok(requests.begin(from, 1));
    const [slow, steady] = requests.sent as [Sent, Sent];
    for (let at = 0; at < 2 * SLOW_MICROS_MAX; at += SECOND / 4) {
      if (at % SECOND === 0) requests.more(steady, RULES.bytesPerSecondMin);
      if (at === 5 * SECOND) requests.more(slow, 50);
      const wasIn = requests.sent.includes(slow);
      requests.pass(SECOND / 4);
      if (wasIn && !requests.sent.includes(slow))
        assert.ok(requests.now >= 5 * SECOND + SLOW_MICROS_MAX && requests.now <= 8 * SECOND + SLOW_MICROS_MAX);
    }
    assert.equal(slow.cutFor, "slow");
    assert.equal(steady.cutFor, undefined);
  });

  test("finds a place for a request by the oldest slow body, and none among fast ones", () => {
    const requests = new Requests();
    for (const from of ["a", "b", "c"]) assert.ok(requests.begin(from, 1));
    const [first, second, third] = requests.sent as [Sent, Sent, Sent];
    assert.ok(!requests.room.makeWay(), "nothing is known of their rates");
    requests.now += SECOND;
    requests.more(first, 200);
    requests.pass(0);
    assert.ok(requests.room.makeWay());
    assert.deepEqual([first.cutFor, second.cutFor, third.cutFor], [undefined, "gave-way", undefined]);
  });
});

function assertShares(requests: Requests): void {
  for (const name of ["a", "b", "c"]) assert.ok(requests.of(name) <= RULES.networkMax, name);
  const arriving = requests.sent.reduce((sum, { taken }) => sum + taken, 0);
  assert.ok(arriving <= RULES.arrivingMax, `${arriving} arriving`);
}

describe("where there is no room", () => {
  const cuts = (requests: readonly Sent[]) => requests.map(({ cutFor }) => cutFor === "gave-way");

  test("the oldest of the network that holds most gives way, if that is more than the newcomer's", () => {
    const requests = new Requests({ networkMax: 1_000, arrivingMax: 1_000 });
    for (const from of ["b", "a", "a", "b", "a"]) assert.ok(requests.begin(from, 200));
    const before = requests.sent.slice();
    assert.ok(!requests.begin("a", 1), "its own network holds most");
    assert.ok(!requests.begin("c", 600), "it would hold as much");
    assert.deepEqual(cuts(before), [false, false, false, false, false]);
    assert.ok(requests.begin("c", 200));
    assert.deepEqual(cuts(before), [false, true, false, false, false]);
  });

  test("one that comes slowly goes before one of the network that holds most", () => {
    const requests = new Requests({ networkMax: 1_000, arrivingMax: 1_000 });
    assert.ok(requests.begin("slow", 100));
    requests.pass(SECOND);
    for (let i = 0; i < 3; i++) assert.ok(requests.begin("fast", 300));
    const before = requests.sent.slice();
    assert.ok(requests.begin("c", 100));
    assert.deepEqual(cuts(before), [true, false, false, false]);
  });

  test("bodies of all networks together hold no more while they arrive than their part of it", () => {
    const requests = new Requests();
    for (const from of ["a", "b", "c"]) for (let i = 0; i < 2; i++) assert.ok(requests.begin(from, 100));
    const [first, ...others] = requests.sent as [Sent, ...Sent[]];
    assert.ok(requests.more(first, 200));
    assert.ok(!requests.more(others.at(-1)!, 200), "none holds more, and all come fast");
    requests.complete(first);
    assert.ok(requests.begin("c", 100), "another request's first piece");
    assert.ok(requests.more(requests.sent.at(-1)!, 100), "what is whole counts no more");
  });

  test("what was not read while the program stood still speaks against nobody", () => {
    const requests = new Requests();
    assert.ok(requests.begin("a", 100));
    const [one] = requests.sent as [Sent];
    const nearly = SLOW_MICROS_MAX - SECOND;
    for (let micros = 0; micros < nearly; micros += SECOND) requests.pass(SECOND);
    requests.standStill(6 * SECOND);
    for (let micros = 0; micros < nearly; micros += SECOND) requests.pass(SECOND);
    assert.equal(one.cutFor, undefined);
    requests.pass(SECOND);
    assert.equal(one.cutFor, "slow");
  });

  test("of a network's share, only its own slow ones give way, and what is whole counts no more", () => {
    const requests = new Requests();
    assert.ok(requests.begin("b", 100));
    requests.pass(SECOND);
    for (let i = 0; i < 2; i++) assert.ok(requests.begin("a", 200));
    const [other, first, second] = requests.sent as [Sent, Sent, Sent];
    assert.ok(requests.more(first, 100));
    assert.ok(!requests.more(second, 1), "beyond the share, where there is room");
    assert.deepEqual(cuts([other, first]), [false, false]);
    requests.complete(first);
    assert.ok(requests.begin("a", 1));
    assert.ok(requests.more(requests.sent.at(-1)!, 499));
  });
});

/** Who asked for how much; undefined where nobody asked for any. */
function run(requests: Requests, one: Step): { sent?: Sent; network: string; bytes: number } | undefined {
  switch (one.kind) {
    case "begin": {
      const asked = { network: one.network, bytes: requests.of(one.network) + one.bytes };
      requests.begin(one.network, one.bytes);
      return asked;
    }
    case "more": {
      const sent = requests.sent[one.which % (requests.sent.length || 1)];
      if (sent === undefined) return undefined;
      const asked = { sent, network: sent.network, bytes: requests.of(sent.network) + one.bytes };
      requests.more(sent, one.bytes);
      return asked;
    }
    case "complete": {
      const sent = requests.sent[one.which % (requests.sent.length || 1)];
      if (sent !== undefined) requests.complete(sent);
      return undefined;
    }
    case "pass":
      requests.pass(one.micros);
      return undefined;
  }
}
