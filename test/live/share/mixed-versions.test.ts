import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { ADMIT_ALL, type AdmissionSpec } from "#core/admission/admission-spec.ts";
import { Apart } from "#live/share/apart.ts";
import type { LimitsStore } from "#live/share/kept-limits.ts";
import type { ShareLink } from "#live/share/share-link.ts";
import { WIRE_VERSION } from "#live/share/report.ts";
import { MemoryStream, replica, type Replica, until } from "./memory-fleet.ts";

const LIMIT = 10;
const DAY = {
  type: "usage-quota",
  per: "tenant",
  requestsMax: LIMIT,
  outputTokensAssumed: 10,
  byTenant: {},
  windowMicros: 86_400_000_000,
  onLimit: "reject",
} as const;
const admission: AdmissionSpec = { ...ADMIT_ALL, limits: { day: DAY } };
const KEPT_MILLIS = 172_800_000;

/** As gateways of the next version are to those of this one, and the other way round: all but the head is unreadable. */
function ofNextVersion(link: ShareLink): ShareLink {
  const swapped = (report: Buffer, rest: number): Buffer => {
    const other = Buffer.from(report);
    other[0] = report[0] === WIRE_VERSION ? WIRE_VERSION + 1 : WIRE_VERSION;
    // Behind the replica's name nothing is as it was.
    if (other[0] !== WIRE_VERSION) other.fill(rest, 30);
    return other;
  };
  const sent = new Map<string, Buffer>();
  return {
    name: link.name,
    get takes() {
      return link.takes;
    },
    start: (listener) =>
      link.start({
        received: (report, isPast) => {
          const own = sent.get(report.toString("latin1"));
          listener.received(own ?? swapped(report, 0xff), isPast);
        },
        caughtUp: () => listener.caughtUp(),
        connected: () => listener.connected(),
        lost: (why) => listener.lost(why),
      }),
    send: (report) => {
      const bytes = swapped(report, 0xff);
      sent.set(bytes.toString("latin1"), Buffer.from(report));
      link.send(bytes);
    },
    renew: (why) => link.renew(why),
    stop: () => link.stop(),
  };
}

class Kept implements LimitsStore {
  text: string | undefined;
  async read() {
    return this.text === undefined ? [] : [{ text: this.text, leftMillis: KEPT_MILLIS }];
  }
  async write(text: string) {
    this.text = text;
  }
}

test("a rolling upgrade to another version of what gateways send: each states who is apart, and a limit lets in at most twice what was left", async (t) => {
  const [stream, store] = [new MemoryStream(), new Kept()];
  const limits = { store, keptMillis: KEPT_MILLIS, writeMillis: 20 };
  const come = async (name: string, link: ShareLink): Promise<Replica> => {
    const one = replica(t, link, name, { admission, limits, leaseMillis: 60_000 });
    await one.share.start();
    return one;
  };
  const before = await come("before", stream.link());
  assert.equal(letIn(t, before, 4), 4);
  await until(() => store.text?.includes('"t"') === true, "what is used is kept");
  const after = await come("after", ofNextVersion(stream.link()));
  assert.equal(letIn(t, after, LIMIT), LIMIT - 4, "what was used when it came counts");
  assert.equal(letIn(t, before, LIMIT), LIMIT - 4);
  for (const [one, other, version] of [
    [before, "after", WIRE_VERSION + 1],
    [after, "before", WIRE_VERSION + 1],
  ] as const) {
    await until(() => one.share.status().apart.length === 1, "it is shown");
    const { apart, peers, counts, state } = one.share.status();
    assert.deepEqual([state, peers], ["shared", []]);
    assert.deepEqual([apart[0]!.replica, apart[0]!.reason], [other, "version"]);
    assert.match(apart[0]!.detail, new RegExp(`sends version ${version}, .* counts limits by itself`));
    assert.ok(counts.reportsOtherVersion > 0 && counts.reportsUnreadable === 0);
    assert.deepEqual(
      one.events.map(({ kind }) => kind),
      ["sharing-refused"],
      "it is reported once",
    );
  }
});

test("a replica that is apart is shown until nothing comes of it any more, and reported anew when it is back", () => {
  const events: string[] = [];
  const apart = new Apart(({ detail }) => void events.push(detail), 2);
  apart.seen("a", "version", "it is new");
  apart.seen("a", "version", "it is new");
  apart.seen("b", "settings", "its key differs");
  apart.seen("c", "settings", "there is no room");
  assert.deepEqual(
    apart.rows(performance.now()).map(({ replica: name, reason }) => [name, reason]),
    [
      ["a", "version"],
      ["b", "settings"],
    ],
  );
  apart.expire(performance.now() + 1);
  assert.deepEqual(apart.rows(performance.now()), []);
  apart.seen("a", "version", "it is new");
  assert.deepEqual(
    events.map((text) => text.split(" ")[1]),
    ["a", "b", "a"],
  );
});

let asked = 0;

function letIn(_t: TestContext, one: Replica, requests: number): number {
  const ids = Array.from({ length: requests }, () => `r${asked++}`);
  return ids.filter((id) => one.arrive(id, { tenant: "t" }) !== "").length;
}

test("two gateways of one name, by mistake: each states it", async (t) => {
  const stream = new MemoryStream();
  const [one, two] = [1, 2].map((epoch) => replica(t, stream.link(), "same", { epoch }));
  for (const each of [one!, two!]) void each.share.start();
  for (const each of [one!, two!]) {
    await until(() => each.share.status().apart.length === 1, "it is shown");
    assert.equal(each.share.status().apart[0]!.reason, "name");
  }
});
