import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { HANG_DEFAULTS, HangJudge, type HangVerdict, type ProbeResult } from "#core/endpoint/hang-judge.ts";
import { randomFor } from "#core/base/random.ts";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { drawnSeeds } from "../../drawn-seeds.ts";

const SECOND = MICROS_PER_SECOND;
const { silentMicros, unansweredMicros, stalledMicros, begunMicros, unwatchedMicros } = HANG_DEFAULTS;
const { usualFactor, usualMicrosMax, prefillMicrosPerToken, returnMicros, returnMicrosMax } = HANG_DEFAULTS;

/** An endpoint under a clock of a tenth of a second: a probe every second, one request that waits if `waitingSince`. */
class Case {
  at = 0;
  readonly judge = new HangJudge(HANG_DEFAULTS, 0);
  readonly verdicts: (HangVerdict & { readonly at: number })[] = [];
  probe: ProbeResult = "moving";
  waitingSince = Infinity;
  wholeSince = Infinity;
  begunSince = Infinity;
  promptTokens = 0;

  /** Runs on for so long, or to the first verdict; returns the verdict. */
  run(micros: number): HangVerdict | undefined {
    const until = this.at + micros;
    while (this.at < until) {
      this.at += SECOND / 10;
      if (this.at % SECOND === 0) this.judge.probed(this.at, this.probe);
      this.judge.waits({
        stream: this.waitingSince,
        begun: this.begunSince,
        whole: this.wholeSince,
        promptTokens: this.promptTokens,
      });
      const verdict = this.judge.judge(this.at);
      if (verdict !== undefined) {
        this.verdicts.push({ ...verdict, at: this.at });
        return verdict;
      }
    }
    return undefined;
  }

  usual(micros: number, count = 40): void {
    for (let i = 0; i < count; i++) this.judge.took("stream", micros);
  }
}

describe("an endpoint hangs", () => {
  test("that answers no probe and sends no byte for silentMicros", () => {
    const one = new Case();
    one.run(10 * SECOND);
    one.probe = "none";
    const verdict = one.run(60 * SECOND);
    assert.ok(verdict?.kind === "suspend" && verdict.reason === "silent");
    assert.ok(one.at - 10 * SECOND >= silentMicros && one.at - 10 * SECOND <= silentMicros + SECOND);
    assert.equal(one.judge.standing, "hung");
  });

  for (const [probe, limit] of [
    ["health", unansweredMicros],
    ["static", stalledMicros],
    ["no-page", unwatchedMicros],
  ] as const)
    for (const kind of ["waitingSince", "wholeSince"] as const)
      test(`whose request has no byte for its limit while probes find: ${probe} (${kind})`, () => {
        const one = new Case();
        one.run(10 * SECOND);
        one.probe = probe;
        one.run(3 * SECOND);
        one[kind] = one.at;
        const since = one.at;
        const verdict = one.run(200 * SECOND);
        assert.ok(verdict?.kind === "suspend" && verdict.reason === "stalled");
        assert.ok(one.at - since >= limit && one.at - since <= limit + SECOND, `${one.at - since}`);
      });
});

test("an endpoint hangs whose streams have begun and get no token while its page shows no work", () => {
  const one = new Case();
  one.run(10 * SECOND);
  one.probe = "static";
  one.begunSince = one.at;
  const since = one.at;
  const verdict = one.run(200 * SECOND);
  assert.ok(verdict?.kind === "suspend" && verdict.reason === "stalled");
  assert.ok(one.at - since >= begunMicros && one.at - since <= begunMicros + SECOND, `${one.at - since}`);
});

describe("an endpoint does not hang", () => {
  test("while its page shows work, however long a prefill takes", () => {
    const one = new Case();
    one.waitingSince = 0;
    assert.equal(one.run(3_600 * SECOND), undefined);
  });

  test("while bytes come, whatever its probes come to", () => {
    for (const probe of ["none", "health", "static", "no-page"] as const) {
      const one = new Case();
      one.probe = probe;
      for (let i = 0; i < 600; i++) {
        one.waitingSince = 0;
        one.judge.answered(one.at);
        assert.equal(one.run(SECOND), undefined, probe);
      }
    }
  });

  test("when nobody waits for it and it answers its health check", () => {
    for (const probe of ["health", "static", "no-page"] as const) {
      const one = new Case();
      one.probe = probe;
      assert.equal(one.run(3_600 * SECOND), undefined, probe);
    }
  });

  test("by one probe without an answer", () => {
    const one = new Case();
    for (let i = 0; i < 200; i++) {
      one.probe = i % 2 === 0 ? "none" : "health";
      assert.equal(one.run(SECOND), undefined);
    }
  });

  for (const [kind, usualSeconds, limitSeconds] of [
    ["stream", 4.5, 18],
    ["stream", 10, 20],
    ["stream", 600, 20],
    ["whole", 10, 40],
  ] as const)
    test(`before a multiple of what is usual there, within a bound where it streams: ${kind}, ${usualSeconds} s`, () => {
      const one = new Case();
      for (let i = 0; i < 40; i++) one.judge.took(kind, usualSeconds * SECOND);
      one.probe = "static";
      one.run(SECOND);
      if (kind === "stream") one.waitingSince = one.at;
      else one.wholeSince = one.at;
      const since = one.at;
      one.run(200 * SECOND);
      const took = one.at - since;
      assert.ok(took >= limitSeconds * SECOND && took <= (limitSeconds + 1) * SECOND, `${took}`);
      assert.equal(
        limitSeconds * SECOND,
        Math.min(usualFactor * usualSeconds * SECOND, kind === "stream" ? usualMicrosMax : Infinity),
      );
    });

  test("before the longest prompt that waits there could be computed, and for whom that keeps waiting neither", () => {
    for (const kind of ["waitingSince", "begunSince", "wholeSince"] as const) {
      const one = new Case();
      one.probe = "static";
      one.run(SECOND);
      one[kind] = one.at;
      one.promptTokens = 100_000;
      const since = one.at;
      one.run(400 * SECOND);
      const took = one.at - since;
      const prefill = 100_000 * prefillMicrosPerToken;
      assert.ok(took >= prefill && took <= prefill + SECOND, `${kind}: ${took}`);
    }
  });

  test("for what was not seen while its host stood still", () => {
    for (const probe of ["none", "health", "static", "no-page"] as const) {
      const one = new Case();
      one.waitingSince = 0;
      one.begunSince = 0;
      one.run(3 * SECOND);
      one.at += 100 * SECOND;
      one.judge.stoodStill(one.at);
      one.probe = probe;
      one.judge.probed(one.at, probe);
      assert.equal(one.run(4 * SECOND), undefined, probe);
      assert.equal(one.run(100 * SECOND)?.kind, "suspend", "it does hang");
    }
  });

  test("single slow answers do not move what is usual", () => {
    const one = new Case();
    one.usual(SECOND, 60);
    for (let i = 0; i < 4; i++) one.judge.took("stream", 1_000 * SECOND);
    one.probe = "static";
    one.run(SECOND);
    one.waitingSince = one.at;
    const since = one.at;
    one.run(200 * SECOND);
    assert.ok(one.at - since <= stalledMicros + SECOND, `${one.at - since}`);
  });
});

describe("an endpoint that hung is let back", () => {
  test("by its own signs, not by a standstill of its host", () => {
    const one = new Case();
    one.probe = "static";
    one.waitingSince = 0;
    assert.equal(one.run(60 * SECOND)?.kind, "suspend");
    one.judge.stoodStill(one.at);
    assert.equal(one.run(returnMicros - 2 * SECOND), undefined);
    assert.equal(one.judge.standing, "hung");
  });

  test("a silent one when it answers probes again, and is well with its first byte", () => {
    const one = new Case();
    one.probe = "none";
    one.run(60 * SECOND);
    assert.equal(one.run(600 * SECOND), undefined, "not by time alone");
    one.probe = "moving";
    const since = one.at;
    assert.equal(one.run(60 * SECOND)?.kind, "resume");
    assert.ok(one.at - since <= 3 * SECOND);
    assert.equal(one.judge.standing, "returning");
    one.run(10 * SECOND);
    assert.equal(one.judge.standing, "returning");
    one.judge.answered(one.at + 1);
    one.run(SECOND);
    assert.equal(one.judge.standing, "well");
  });

  test("a stalled one to try a request after a pause that doubles, and starts anew once it served", () => {
    const one = new Case();
    one.probe = "static";
    let pause = returnMicros;
    for (let i = 0; i < 6; i++) {
      one.waitingSince = one.at;
      assert.equal(one.run(600 * SECOND)?.kind, "suspend");
      one.waitingSince = Infinity;
      const since = one.at;
      assert.equal(one.run(600 * SECOND)?.kind, "resume");
      assert.ok(Math.abs(one.at - since - pause) <= SECOND, `${i}: ${one.at - since}`);
      pause = Math.min(pause * 2, returnMicrosMax);
    }
    one.judge.answered(one.at + 1);
    one.run(SECOND);
    one.waitingSince = one.at;
    one.run(600 * SECOND);
    one.waitingSince = Infinity;
    const since = one.at;
    one.run(600 * SECOND);
    assert.ok(one.at - since <= returnMicros + SECOND);
  });

  test("a stalled one at once when its page shows work or an answer that was left there goes on", () => {
    for (const sign of ["page", "byte"]) {
      const one = new Case();
      one.probe = "static";
      one.waitingSince = 0;
      one.run(600 * SECOND);
      if (sign === "page") one.probe = "moving";
      else one.judge.answered(one.at + 1);
      assert.equal(one.run(2 * SECOND)?.kind, "resume", sign);
    }
  });
});

test("verdicts alternate, and the same signs give the same verdicts", () => {
  const run = (seed: number) => {
    const random = randomFor(seed, 7);
    const one = new Case();
    for (let i = 0; i < 60; i++) {
      one.probe = (["none", "health", "static", "moving", "no-page"] as const)[random.below(5)]!;
      one.waitingSince = random.below(2) === 0 ? Infinity : one.at;
      if (random.below(3) === 0) one.judge.answered(one.at);
      if (random.below(3) === 0) one.judge.took("stream", random.below(20) * SECOND);
      one.run(random.below(40) * SECOND);
    }
    return one.verdicts;
  };
  for (const seed of drawnSeeds(40, 0)) {
    const verdicts = run(seed);
    assert.deepEqual(verdicts, run(seed));
    verdicts.forEach(({ kind }, i) => assert.equal(kind, i % 2 === 0 ? "suspend" : "resume"));
  }
});
