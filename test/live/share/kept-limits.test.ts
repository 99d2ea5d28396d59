import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { ADMIT_ALL, type AdmissionSpec } from "#core/admission/admission-spec.ts";
import type { Input } from "#core/input/input.ts";
import type { PeerWindow } from "#core/request/peer-news.ts";
import { type LimitsStore, keptLimitsText, windowsOfText } from "#live/share/kept-limits.ts";
import { MemoryStream, newRouter, replica, type Replica, until } from "./memory-fleet.ts";

const DAY = {
  type: "usage-quota",
  per: "tenant",
  requestsMax: 3,
  outputTokensAssumed: 10,
  byTenant: {},
  windowMicros: 86_400_000_000,
  onLimit: "reject",
} as const;
const admission: AdmissionSpec = { ...ADMIT_ALL, limits: { day: DAY } };
const KEPT_MILLIS = 172_800_000;

/** What outlives replicas, in memory. */
class Kept implements LimitsStore {
  text: string | undefined;
  isAway = false;

  async read() {
    if (this.isAway) throw new Error("it is away");
    return this.text === undefined ? [] : [{ text: this.text, leftMillis: KEPT_MILLIS - 1_000 }];
  }

  async write(text: string) {
    if (this.isAway) throw new Error("it is away");
    this.text = text;
  }
}

function come(t: TestContext, stream: MemoryStream, kept: LimitsStore, name: string) {
  const link = stream.link();
  let isKilled = false;
  let writes = 0;
  const store: LimitsStore = {
    read: () => kept.read(),
    write: async (text, keptMillis) => {
      if (isKilled) return;
      writes++;
      await kept.write(text, keptMillis);
    },
  };
  const kill = (): void => {
    isKilled = true;
    link.cut();
  };
  const inputs: Input[] = [];
  const one = replica(t, link, name, { admission, limits: { store, keptMillis: KEPT_MILLIS, writeMillis: 20 } });
  one.intake.listen({ accepted: (input) => void inputs.push(input) });
  const started = one.share.start();
  return { ...one, kill, inputs, started, writes: () => writes };
}

const used = ({ intake }: Pick<Replica, "intake">) =>
  Math.round(intake.router.admission.limits.get("day")!.uses(performance.now() * 1000)[0]?.used ?? 0);

test("all replicas gone, one after the other or killed at once: who comes next goes on with what was used, as an input that replays", async (t) => {
  const [stream, store] = [new MemoryStream(), new Kept()];
  const [one, two] = [come(t, stream, store, "one"), come(t, stream, store, "two")];
  assert.notEqual(one.arrive("a", { tenant: "t" }), "");
  assert.notEqual(two.arrive("b", { tenant: "t" }), "");
  await until(() => used(one) === 2 && used(two) === 2, "both know of both");
  await until(() => store.text?.includes('"t"') === true, "it is kept");
  // Killed: neither says a word more.
  for (const { kill } of [one, two]) kill();
  const three = come(t, new MemoryStream(), store, "three");
  await three.started;
  assert.equal(used(three), 2);
  assert.notEqual(three.arrive("c", { tenant: "t" }), "");
  assert.equal(three.arrive("d", { tenant: "t" }), "");
  // The last one goes, before a second was over since.
  await three.share.stop();
  const four = come(t, new MemoryStream(), store, "four");
  await four.started;
  assert.equal(four.arrive("e", { tenant: "t" }), "");
  assert.notEqual(four.arrive("f", { tenant: "other" }), "");
  const again = newRouter(admission);
  const decided = four.inputs.map((input) => again.accept(input)?.kind).filter((kind) => kind !== undefined);
  assert.deepEqual(decided, ["rejected", "routed"]);
  const { limits } = four.share.status();
  assert.deepEqual([limits?.takenOver, limits?.takenOverAgeMillis], [1, 1_000]);
});

test("what is kept is written by one replica, and by nobody that could not read it before", async (t) => {
  const [stream, store] = [new MemoryStream(), new Kept()];
  store.text = keptLimitsText([window("t", 2)], KEPT_MILLIS).text;
  store.isAway = true;
  const one = come(t, stream, store, "one");
  await one.started;
  assert.notEqual(one.arrive("a", { tenant: "t" }), "");
  store.isAway = false;
  await until(() => one.share.status().limits!.takenOver === 1, "it is read once it can be");
  await until(() => one.share.status().limits!.written !== undefined, "and written then");
  assert.equal(used(one), 2, "at least what was used before");
  const two = come(t, stream, store, "two");
  await two.started;
  await until(() => two.intake.router.peers.peers.includes("one"), "it knows of the first one");
  const writes = two.writes();
  two.arrive("b", { tenant: "t" });
  await until(() => /"t",\d+,3,/.test(store.text!), "the first one writes what the second one let in");
  assert.equal(two.writes(), writes);
});

test("garbage where limits are kept is refused with a reason, and replaced", async (t) => {
  const store = new Kept();
  for (const text of ["", "{", "null", '{"format":9}', '{"format":1,"keptMillis":1,"windows":[[1]]}']) {
    store.text = text;
    const one = come(t, new MemoryStream(), store, "one");
    await one.started;
    assert.deepEqual(
      one.events.map(({ kind }) => kind),
      ["sharing-refused"],
      text,
    );
    one.arrive("a", { tenant: "t" });
    await one.share.stop();
    assert.deepEqual(
      windowsOfText(store.text, KEPT_MILLIS).map(({ subject }) => subject),
      ["t"],
    );
  }
});

test("what is kept has a bound: who used a limit last is in it", () => {
  for (const length of [10, 1_000]) {
    const windows = Array.from({ length: 10_000 }, (_, i) => window(`${i}-${"x".repeat(length)}`, 1));
    const { text, leftOut } = keptLimitsText(windows, KEPT_MILLIS);
    assert.ok(text.length <= 2_100_000 && leftOut > 0, `${text.length}, ${leftOut}`);
    const back = windowsOfText(text, KEPT_MILLIS);
    assert.deepEqual([back.length, back[0]!.subject], [windows.length - leftOut, windows[0]!.subject]);
  }
  const odd = [window('a"b\\c\n\u0000é', 1), window("", 2)];
  assert.deepEqual(
    windowsOfText(keptLimitsText(odd, 10).text, 4),
    odd.map((one) => ({ ...one, ageMicros: 6_000 })),
  );
});

function window(subject: string, requests: number): PeerWindow {
  const measure = "usage-quota tenant 86400000000";
  return { kind: "window", limit: "day", measure, subject, passedMicros: 5, counts: [requests, 0, 0, 0, 0, 0] };
}

test("a text that is no record of windows is refused by its part that is none", () => {
  const row = '["day","measure","t",5,1,0]';
  const head = (keptMillis: string, windows: string) => `{"format":1,"keptMillis":${keptMillis},"windows":${windows}}`;
  assert.equal(windowsOfText(head("10", `[${row}]`), 4).length, 1);
  for (const [text, reason] of [
    ["null", "its head"],
    [head('"10"', `[${row}]`), "its head"],
    [head("-1", `[${row}]`), "its head"],
    [head("10", "{}"), "its head"],
    [head("10", "7"), "its head"],
    [head("10", `[${Array.from({ length: 8_193 }, () => row).join(",")}]`), "more than 8192 windows"],
    [head("10", `[${row},]`), "window 1 is none"],
    [head("10", `[${row}${row}]`), "its end"],
    [head("10", `[${row}]`).slice(0, -1), "its end"],
    [`${head("10", `[${row}]`)} `, "its end"],
    [head("10", `[${row},7]`), "window 1 is none"],
    [head("10", `[${row},["day","measure",3,5]]`), "window 1 is none"],
    [head("10", '[["day","measure","t",-5]]'), "window 0 is none"],
    [head("10", '[["day","measure","t",5,0.5]]'), "window 0 is none"],
    [head("10", `[["day","measure","t",5${",1".repeat(65)}]]`), "window 0 is none"],
    [" ".repeat(4_194_305), "it is too long"],
  ] as const) {
    assert.throws(() => windowsOfText(text, 4), { message: reason }, text.slice(0, 80));
  }
  assert.equal(windowsOfText(head("10", `[["day","measure","t",5${",1".repeat(64)}]]`), 4)[0]!.counts.length, 64);
});

test("windows are as old as the text is, never from the future", () => {
  const text = keptLimitsText([window("t", 1)], 10).text;
  const ages = [4, 10, 11].map((leftMillis) => windowsOfText(text, leftMillis)[0]!.ageMicros);
  assert.deepEqual(ages, [6_000, 0, 0]);
});
