import assert from "node:assert/strict";
import { test } from "node:test";
import { ADMIT_ALL } from "#core/admission/admission-spec.ts";
import { MemoryStream, replica, until } from "./memory-fleet.ts";

const DAY = {
  type: "usage-quota",
  per: "tenant",
  requestsMax: 3,
  outputTokensAssumed: 10,
  byTenant: {},
  windowMicros: 86_400_000_000,
  onLimit: "reject",
} as const;

test("two replicas replaced one after the other: a tenant whose quota is used up is refused by those that came", async (t) => {
  const admission = { ...ADMIT_ALL, limits: { day: DAY } };
  const stream = new MemoryStream();
  const come = (name: string) => {
    const one = replica(t, stream.link(), name, { admission });
    void one.share.start();
    return one;
  };
  const used = ({ intake }: ReturnType<typeof come>) =>
    Math.round(intake.router.admission.limits.get("day")!.uses(performance.now() * 1000)[0]?.used ?? 0);
  const [one, two] = [come("one"), come("two")];
  for (const id of ["a", "b"]) one.arrive(id, { tenant: "t" });
  two.arrive("c", { tenant: "t" });
  for (const id of ["a", "b"]) one.finish(id);
  await until(() => used(one) === 3 && used(two) === 3, "both know of all three");
  await one.share.stop();
  const three = come("three");
  await until(() => used(three) === 3, "the first that came knows");
  await two.share.stop();
  const four = come("four");
  await until(() => used(four) === 3, "the second that came knows");
  assert.equal(three.arrive("d", { tenant: "t" }), "");
  assert.equal(four.arrive("e", { tenant: "t" }), "");
  assert.notEqual(four.arrive("f", { tenant: "other" }), "");
});
