import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile, profileNames } from "#config/profile-file.ts";
import { randomFor } from "#core/base/random.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { buildProfile } from "#core/profile/build-profile.ts";
import { drawState } from "../state.ts";

const STATES = Array.from({ length: 60 }, (_, i) => ({ ...drawState(randomFor(43, i), 8), stream: i }));

/** Each shipped policy, and each with ties that are drawn, and among candidates that are drawn. */
const SPECS = profileNames().flatMap((name): ProfileSpec[] => {
  const { spec } = loadProfile(name);
  const picker = { plugin: "max-score", parameters: { tieBreak: "random" } };
  const drawn = { plugin: "power-of-two", parameters: {} };
  return [spec, { ...spec, picker }, { ...spec, filters: [...spec.filters, drawn], picker }];
});

test("choices with several streams are those of each by itself, and what is noted is of the last", () => {
  let differing = 0;
  for (const spec of SPECS) {
    const [one, other] = [0, 1].map(() => buildProfile("p", spec, false));
    for (const { request, candidates, stream } of STATES) {
      const ids = candidates.map(({ id }) => id);
      const ineligible = Uint8Array.from(ids, (_, i) => (i % 5 === 4 ? 1 : 0));
      const streams = (): ReturnType<typeof randomFor>[] => Array.from({ length: 6 }, (_, i) => randomFor(stream, i));
      const each = streams().map((random) => one!.choose(request, candidates, ids, ineligible, random).index);
      assert.deepEqual(other!.chooseEach(request, candidates, ids, ineligible, streams()), each);
      const chosen = candidates[each.at(-1)!];
      if (chosen !== undefined) assert.deepEqual(other!.noted(chosen), one!.noted(chosen));
      if (new Set(each).size > 1) differing++;
    }
  }
  assert.ok(differing > 1000, `${differing}`);
});
