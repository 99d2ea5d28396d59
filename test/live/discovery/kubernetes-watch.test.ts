import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setImmediate } from "node:timers/promises";

import type { KubernetesApi, WatchEvent } from "#live/discovery/kubernetes-api.ts";
import type { KubernetesObject } from "#live/discovery/kubernetes-objects.ts";
import { ResourceWatch } from "#live/discovery/kubernetes-watch.ts";
import { SourceStatus } from "#live/endpoints/source-status.ts";

const COLLECTION = { group: "", version: "v1", resource: "pods", namespace: "n" };

function object(i: number): KubernetesObject {
  return { metadata: { name: `p${i}`, namespace: "n", uid: `u${i}` } };
}

/** What is shown of a list and the events of one watch, which stays open; counts the objects that were looked at. */
async function shown(t: TestContext, listed: number, events: () => AsyncGenerator<WatchEvent<KubernetesObject>>) {
  const seen = { notified: 0, objects: 0, names: [] as string[] };
  let isRead = (): void => {};
  const read = new Promise<void>((resolve) => (isRead = resolve));
  const api: KubernetesApi = {
    list: async () => ({ items: Array.from({ length: listed }, (_, i) => object(i)) as never[], version: "1" }),
    watch: async <T>() =>
      (async function* () {
        yield* events() as AsyncGenerator<WatchEvent<T>>;
        isRead();
        await new Promise(() => {});
      })(),
    stop: async () => {},
  };
  const watch = new ResourceWatch<KubernetesObject>({
    api,
    collection: COLLECTION,
    changed: (objects) => {
      seen.notified++;
      seen.objects += objects.size;
      seen.names = [...objects.values()].map(({ metadata }) => metadata?.name ?? "");
    },
    trouble: () => {},
    status: new SourceStatus("pods"),
    retryMillis: 1,
    retryMillisMax: 1,
  });
  t.after(() => void watch.stop());
  await read;
  for (let passes = 0; passes < 4; passes++) await setImmediate();
  return seen;
}

test("events that come together are shown once, all of them", async (t) => {
  const seen = await shown(t, 100, async function* () {
    for (let i = 100; i < 300; i++) yield { type: "ADDED", object: object(i) };
    for (let i = 0; i < 250; i++) yield { type: "DELETED", object: object(i) };
  });
  // The list, and what followed.
  assert.equal(seen.notified, 2);
  assert.deepEqual(
    seen.names,
    Array.from({ length: 50 }, (_, i) => `p${250 + i}`),
  );
});

test("one event after the other, a pass apart, costs a few objects an event", async (t) => {
  const events = 2_000;
  const seen = await shown(t, 1_000, async function* () {
    for (let i = 0; i < events; i++) {
      yield { type: "MODIFIED", object: object(i % 1_000) };
      await setImmediate();
    }
  });
  assert.ok(seen.objects < 1_000 + 1_000 + 10 * events, `${seen.objects} objects for ${events} events`);
  assert.ok(seen.notified > events / 200, `notified ${seen.notified} times`);
});

test("an event alone is shown", async (t) => {
  const seen = await shown(t, 1_000, async function* () {
    yield { type: "ADDED", object: object(1_000) };
  });
  assert.deepEqual([seen.notified, seen.names.length], [2, 1_001]);
});
