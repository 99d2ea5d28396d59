import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { LIVE_SETTINGS, type LiveSetting } from "#config/live-settings.ts";
import { resolveProfiles } from "#config/resolve-profiles.ts";
import { CONFIG_SCHEMA } from "#config/schema.ts";
import { Assembly } from "#serve/assembly/assembly.ts";
import type { AnyPart, Changed } from "#serve/assembly/part.ts";

/** A table that is drawn: each part needs some of those that were drawn before it, and they are listed in any order. */
const TABLES = fc
  .array(fc.record({ needs: fc.array(fc.nat(), { maxLength: 3 }), isSlow: fc.boolean(), place: fc.nat() }), {
    minLength: 1,
    maxLength: 12,
  })
  .map((drawn) =>
    drawn
      .map(({ needs, ...one }, i) => ({
        ...one,
        name: `p${i}`,
        needs: [...new Set(needs.flatMap((need) => (i === 0 ? [] : [`p${need % i}`])))],
      }))
      .sort((a, b) => a.place - b.place),
  );
type Drawn = typeof TABLES extends fc.Arbitrary<infer Table> ? Table : never;

type Event = `${"begins" | "starts" | "drains" | "stops"} ${string}`;

/** A table whose parts write down what happens to them; the one of that name fails to start. */
function table(drawn: Drawn, events: Event[], failing?: string): Assembly<object, Record<string, string>> {
  const parts = drawn.map(({ name, needs, isSlow }): AnyPart => ({
    name,
    needs,
    start: async (given: Record<string, string>) => {
      assert.deepEqual(given, Object.fromEntries(needs.map((need) => [need, `value of ${need}`])), "these alone");
      events.push(`begins ${name}`);
      for (let turns = isSlow ? 5 : 0; turns > 0; turns--) await Promise.resolve();
      if (name === failing) throw new Error(name);
      events.push(`starts ${name}`);
      return `value of ${name}`;
    },
    drain: async () => void events.push(`drains ${name}`),
    stop: async (value: string) => {
      assert.equal(value, `value of ${name}`);
      await Promise.resolve();
      events.push(`stops ${name}`);
    },
  }));
  return new Assembly<object, Record<string, string>>([], parts, []);
}

const namesOf = (events: readonly Event[], kind: string): string[] =>
  events.flatMap((event) => (event.startsWith(`${kind} `) ? [event.split(" ")[1]!] : []));

describe("a table of parts", () => {
  test("each begins once all that it needs has started, gets nothing else, and stops before all that it needs", async () => {
    await fc.assert(
      fc.asyncProperty(TABLES, async (drawn) => {
        const events: Event[] = [];
        const running = await table(drawn, events).start({});
        await running.stop();
        await running.stop();
        for (const { name, needs } of drawn) {
          for (const need of needs) {
            assert.ok(events.indexOf(`starts ${need}`) < events.indexOf(`begins ${name}`), `${name} needs ${need}`);
            assert.ok(events.indexOf(`stops ${name}`) < events.indexOf(`stops ${need}`), `${name} needs ${need}`);
          }
        }
        assert.deepEqual(namesOf(events, "stops"), namesOf(events, "begins").toReversed());
        assert.equal(events.length, 4 * drawn.length, "each once");
        const [lastDrain, firstStop] = ["drains", "stops"].map((kind) =>
          events.map((one) => one.split(" ")[0]).indexOf(kind),
        );
        assert.equal(firstStop! - lastDrain!, drawn.length, "all drain before any stops");
      }),
    );
  });

  test("where one fails nothing is left running, and what it threw is thrown", async () => {
    await fc.assert(
      fc.asyncProperty(TABLES, fc.nat(), async (drawn, which) => {
        const events: Event[] = [];
        const { name: failing } = drawn[which % drawn.length]!;
        await assert.rejects(table(drawn, events, failing).start({}), { message: failing });
        assert.deepEqual(namesOf(events, "stops").sort(), namesOf(events, "starts").sort());
        const needing = new Set([failing]);
        for (const { name, needs } of [...drawn].sort((a, b) => Number(a.name.slice(1)) - Number(b.name.slice(1)))) {
          if (needs.some((need) => needing.has(need))) needing.add(name);
        }
        needing.delete(failing);
        assert.deepEqual(
          namesOf(events, "begins").filter((name) => needing.has(name)),
          [],
        );
      }),
    );
  });

  test("parts of a name start with what they need, and nothing else", async () => {
    await fc.assert(
      fc.asyncProperty(TABLES, fc.nat(), async (drawn, which) => {
        const events: Event[] = [];
        const wanted = new Set([drawn[which % drawn.length]!.name]);
        for (const name of wanted) for (const need of drawn.find((one) => one.name === name)!.needs) wanted.add(need);
        const running = await table(drawn, events).start({}, {}, [...wanted].slice(0, 1));
        assert.deepEqual(namesOf(events, "starts").sort(), [...wanted].sort());
        await running.stop();
        assert.deepEqual(namesOf(events, "stops").sort(), [...wanted].sort());
      }),
    );
  });

  test("a slow part holds up those alone that need it", async () => {
    const slow = Promise.withResolvers<void>();
    const started: string[] = [];
    const start = (name: string, until?: Promise<void>) => async () => {
      await until;
      started.push(name);
    };
    const parts: AnyPart[] = [
      { name: "slow", needs: [], start: start("slow", slow.promise) },
      { name: "beside", needs: [], start: start("beside") },
      { name: "behind", needs: ["slow"], start: start("behind") },
    ];
    const running = new Assembly([], parts, []).start({});
    while (started.length === 0) await new Promise(setImmediate);
    slow.resolve();
    await running;
    assert.deepEqual(started, ["beside", "slow", "behind"]);
  });

  test("asked to leave while it starts, no further part begins", async () => {
    const leaving = new AbortController();
    const started: string[] = [];
    const parts: AnyPart[] = [
      { name: "first", needs: [], start: () => (leaving.abort(), started.push("first")), stop: () => started.pop() },
      { name: "second", needs: ["first"], start: () => started.push("second") },
    ];
    const running = await new Assembly([], parts, []).start({}, { leaving: leaving.signal });
    assert.deepEqual(started, ["first"]);
    await running.stop();
    assert.deepEqual(started, []);
  });

  test("a part that does not stop, or fails to, holds up no other; both are reported", async () => {
    const [stopped, problems]: [string[], string[]] = [[], []];
    const failing = () => {
      throw new Error("broken");
    };
    const parts: AnyPart[] = [
      { name: "first", needs: [], start: () => {}, stop: () => stopped.push("first") },
      { name: "hanging", needs: [], start: () => {}, stop: () => new Promise(() => {}) },
      { name: "failing", needs: [], start: () => {}, stop: failing },
    ];
    const report = (part: string, problem: string) => void problems.push(`${part}: ${problem}`);
    const running = await new Assembly([], parts, []).start({}, { report, stopMillisMax: 20 });
    await assert.rejects(running.stop(), { message: "broken" });
    assert.deepEqual(stopped, ["first"]);
    assert.deepEqual(problems, ["failing: broken", "hanging: not over within 20 ms"]);
  });

  test("a start that fails does not wait for one that hangs, which is stopped if it ever comes", async () => {
    const slow = Promise.withResolvers<string>();
    const stopped = Promise.withResolvers<string>();
    const parts: AnyPart[] = [
      { name: "slow", needs: [], start: () => slow.promise, stop: (value: string) => stopped.resolve(value) },
      { name: "failing", needs: [], start: () => Promise.reject(new Error("broken")) },
    ];
    await assert.rejects(new Assembly([], parts, []).start({}, { stopMillisMax: 20 }), { message: "broken" });
    slow.resolve("late");
    assert.equal(await stopped.promise, "late");
  });

  const part = (name: string, needs: readonly string[], settings: readonly LiveSetting[] = []): AnyPart => {
    return { name, needs, settings, start: () => {} };
  };

  test("parts that need each other, unknown needs and names that are there twice are refused", () => {
    const of =
      (...parts: AnyPart[]) =>
      () =>
        new Assembly(["given"], parts, []);
    assert.throws(of(part("a", ["b"]), part("b", ["c"]), part("c", ["a"])), /a needs b needs c needs a/);
    assert.throws(of(part("a", ["a"])), /a needs a/);
    assert.throws(of(part("a", ["given", "nobody"])), /a needs nobody, which is no part/);
    assert.throws(of(part("a", []), part("a", [])), /a is there twice/);
    assert.throws(of(part("given", [])), /given is there twice/);
  });

  test("each live setting has exactly one owner", () => {
    const of =
      (...parts: AnyPart[]) =>
      () =>
        new Assembly([], parts, ["limits", "admission"]);
    assert.throws(of(part("a", [], ["limits"])), /no part takes over admission/);
    assert.throws(
      of(part("a", [], ["limits", "admission"]), part("b", [], ["limits"])),
      /limits belongs to a and to b/,
    );
    assert.doesNotThrow(of(part("a", [], ["limits"]), part("b", [], ["admission"])));
  });

  test("a change reaches the owners of its settings that run, once each, in the order of their start", async () => {
    const taken: string[] = [];
    const change = (value: string, { version }: Changed) => void taken.push(`${value} ${version}`);
    const owner = (name: string, needs: readonly string[], settings: readonly LiveSetting[]): AnyPart => {
      return { name, needs, settings, start: () => name, change };
    };
    const parts = [
      owner("late", ["early"], ["limits"]),
      owner("early", [], ["profiles", "admission"]),
      owner("never", [], ["rollout.start"]),
    ];
    const changed = { name: "source", needs: ["changed"], start: ({ changed }: Record<string, unknown>) => changed };
    const table = new Assembly<object, { readonly source: (settings: readonly LiveSetting[], to: Changed) => void }>(
      [],
      [...parts, changed],
      [],
    );
    const running = await table.start({}, {}, ["source", "late" as never]);
    const config = CONFIG_SCHEMA.parse({});
    const to = {
      config,
      ...resolveProfiles(config, { environment: {}, readsFiles: false }),
      version: 2,
      source: "test",
    };
    running.parts.source(LIVE_SETTINGS, to);
    running.parts.source(["profiles"], { ...to, version: 3 });
    assert.deepEqual(taken, ["early 2", "late 2", "early 3"]);
  });
});
