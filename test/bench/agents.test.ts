import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { test } from "node:test";
import { sessionWorkload, unseenFiles } from "../../bench/agents/unseen-sessions.ts";
import { CHOICE_CASES } from "../../bench/default-choice/case.ts";

/** As kv-cache-tester writes them; `blocks` are what sets one session apart from another. */
function sessionJson(id: string, blocks: readonly number[], turns = 2): string {
  const turn = (at: number): object => ({
    t: 40 * at,
    type: "n",
    model: "m",
    in: 64 * (blocks.length + at),
    out: 10,
    hash_ids: [...blocks, ...Array.from({ length: at }, (_, i) => 1_000 + i)],
    api_time: 1,
  });
  const requests = Array.from({ length: turns }, (_, at) => turn(at));
  return JSON.stringify({ id, block_size: 64, hash_id_scope: "local", tool_tokens: 0, system_tokens: 0, requests });
}

function inFolders(check: (known: string, more: string) => Promise<void> | void): () => Promise<void> {
  return async () => {
    const [known, more] = [mkdtempSync(join(tmpdir(), "known-")), mkdtempSync(join(tmpdir(), "more-"))];
    try {
      await check(known, more);
    } finally {
      for (const folder of [known, more]) rmSync(folder, { recursive: true, force: true });
    }
  };
}

test(
  "a session that is known, or there under two names, is not unseen twice",
  inFolders((known, more) => {
    writeFileSync(join(known, "a.json"), sessionJson("a", [1, 2]));
    writeFileSync(join(more, "other-name-of-a.json"), sessionJson("other", [1, 2]));
    writeFileSync(join(more, "b.json"), sessionJson("b", [3, 4]));
    writeFileSync(join(more, "c.json"), sessionJson("c", [5]));
    writeFileSync(join(more, "z-again-b.json"), sessionJson("z", [3, 4]));
    const names = unseenFiles(more, [known]).map((file) => basename(file));
    assert.deepEqual(names.toSorted(), ["b.json", "c.json"]);
    assert.deepEqual(
      unseenFiles(more, [known]).map((file) => basename(file)),
      names,
      "the draw is the same each time",
    );
  }),
);

test(
  "a workload has each session whole, a turn after its answer, and none shares a block with another",
  inFolders(async (_, more) => {
    const turns = [3, 1, 4];
    const files = turns.map((count, i) => {
      const file = join(more, `${i}.json`);
      writeFileSync(file, sessionJson(`s${i}`, [1, 2, 3, i], count));
      return file;
    });
    const one = { ...CHOICE_CASES.find(({ halves }) => halves === "sessions")!, sessionsPerSecond: 0.1 };
    const requests = await sessionWorkload(one, files, 0, Infinity);
    assert.deepEqual(
      requests.map(({ index }) => index),
      requests.map((_request, i) => i),
    );
    const bySession = Map.groupBy(requests, ({ session }) => session);
    const lengths = [...bySession.values()].map(({ length }) => length);
    assert.deepEqual(new Set(lengths), new Set(turns));
    assert.equal(lengths.length, turns.length);
    for (const [session, own] of bySession) {
      for (const { turn, thinkMicros } of own) assert.equal(thinkMicros === undefined, turn === 0, session);
      const others = requests.filter((each) => each.session !== session);
      const taken = new Set(others.flatMap(({ blockIds }) => [...(blockIds ?? [])]));
      assert.ok(own.every(({ blockIds }) => blockIds?.every((id: number) => !taken.has(id))));
    }
  }),
);
