import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { MICROS_PER_SECOND } from "#core/base/units.ts";
import { EndpointWindows } from "#core/scorer/window-sum.ts";
import { loadProfile } from "#config/profile-file.ts";
import { type ChoiceCase, OPEN } from "../../bench/default-choice/case.ts";
import { choiceWorkload } from "../../bench/default-choice/choice-workload.ts";
import { NEWCOMER, RETURNING, SLOW } from "../../bench/joining/changing-fleet.ts";
import { joiningRun, type JoiningRun } from "../../bench/joining/joining-run.ts";

const ENGINES = 8;
const EVEN = 1 / ENGINES;
const REQUESTS = 1_500;
const SECOND = MICROS_PER_SECOND;
/** In which shares of few requests say nothing. */
const REQUESTS_MIN = 12;

async function runOf(path: string, rateScale: number, seed: number): Promise<JoiningRun> {
  const one: ChoiceCase = { ...OPEN, name: path, path, halves: "draws", rateScale };
  const requests = await choiceWorkload(one, "choosing", seed, REQUESTS, "");
  return joiningRun(requests, loadProfile("gnomon"), ENGINES, seed);
}

const WORKLOADS = [
  ["summarization.yaml", 3],
  ["content-generation.yaml", 3],
  ["documents.yaml", 2],
] as const;

for (const [path, rateScale] of WORKLOADS)
  test(`law: under the default nobody is flooded or starved in a fleet that changes (${path})`, async () => {
    const { fleet, shares, lastsMicros } = await runOf(path, rateScale, 0);
    for (const [id, from, until] of [
      [NEWCOMER, fleet.joinsAt, fleet.killedAt],
      [RETURNING, fleet.backAt, lastsMicros],
    ] as const) {
      const soon = from + 15 * SECOND;
      assert.ok(until > soon + 5 * SECOND, "time is left after it");
      const most = shares.mostFirstTurns(id, from, soon, 5 * SECOND, REQUESTS_MIN);
      assert.ok(most.share <= 1 / 2, `${id} got ${most.requests} of ${most.of} first turns within 5 s`);
      const [there, elsewhere] = [true, false].map((is) => shares.firstTurnMicros(from, soon, id, is)) as [
        number,
        number,
      ];
      assert.ok(!(there > 2 * elsewhere), `first tokens of its first turns take ${there} us, elsewhere ${elsewhere}`);
      const later = shares.tokenShare(id, soon, until);
      assert.ok(later >= EVEN / 2 && later <= 2 * EVEN, `${id} has ${later} of the tokens after 15 s`);
    }
    const slow = shares.tokenShare(SLOW, 0, lastsMicros);
    assert.ok(slow >= EVEN / 8 && slow <= EVEN, `the slow one has ${slow} of the tokens`);
    const dead = shares.share(RETURNING, fleet.killedAt + 5 * SECOND, fleet.backAt, false);
    assert.ok(dead.of > 0 && dead.share <= EVEN / 8, `${dead.requests} of ${dead.of} went to one that is gone`);
  });

test("law: who joins counts as in mean demand at first, and by what it was sent a window later", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 12, max: 1e6 }), { minLength: 1, maxLength: 8 }),
      fc.nat(60),
      (sent, seconds) => {
        const windows = new EndpointWindows(60);
        sent.forEach((tokens, i) => windows.add(`e${i}`, 0, tokens));
        windows.begin("new", SECOND);
        const mean = sent.reduce((sum, tokens) => sum + tokens, 0) / sent.length;
        const first = windows.sum("new", SECOND);
        assert.ok(Math.abs(first - mean) <= 12, `${first} in place of ${mean}`);
        const then = windows.sum("new", (1 + seconds) * SECOND);
        assert.ok(Math.abs(then - mean * (1 - Math.ceil(seconds / 5) / 12)) <= 12 + mean / 12);
        assert.equal(windows.sum("new", 62 * SECOND), 0);
      },
    ),
  );
});
