import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { writeWekaFolder } from "#trace/export/weka-folder.ts";
import { IMPORT_DEFAULTS } from "#trace/import/import-options.ts";
import { openWorkload } from "#trace/import/open-workload.ts";
import { type TrafficRequest, unobserved } from "#trace/transform/traffic.ts";
import { LENGTHS_ONLY, type WorkloadRequest } from "#trace/workload-request.ts";
import { collected, streamed } from "../transform/workload-samples.ts";

const SECOND = 1_000_000;

/** A turn whose prompt begins with all of the conversation's blocks before it. */
function turn(session: string, number: number, more: Partial<WorkloadRequest> = {}): WorkloadRequest {
  const blocks = 2 + number;
  return {
    ...LENGTHS_ONLY,
    index: 0,
    session,
    turn: number,
    arrivalMicros: 0,
    thinkMicros: number === 0 ? undefined : (number + 1) * SECOND + 7,
    promptTokens: blocks * 64 + 5,
    outputTokens: 3 + number,
    blockTokens: 64,
    blockIds: Float64Array.from({ length: blocks }, (_, i) => (i === 0 ? 1 : session.length * 1_000_003 + i)),
    model: "m",
    ...more,
  };
}

const SUBAGENT = { parent: { session: "one", turn: 0 }, thinkMicros: 2 * SECOND + 5 };
/** Two conversations that share a block; the first one starts two others, of which it waits for one. */
const WORKLOAD = [
  turn("one", 0),
  turn("one/waited-for", 0, SUBAGENT),
  turn("one/waited-for", 1),
  turn("one/left-alone", 0, { ...SUBAGENT, thinkMicros: SECOND }),
  turn("one", 1, { joins: ["one/waited-for"] }),
  turn("one", 2),
  turn("second", 0, { arrivalMicros: 90 * SECOND }),
  turn("second", 1),
].map((request, index) => ({ ...request, index }));

async function written(t: TestContext, traffic: AsyncIterable<TrafficRequest>) {
  const parent = mkdtempSync(join(tmpdir(), "gnomon-weka-"));
  t.after(() => rmSync(parent, { recursive: true }));
  const folder = join(parent, "sessions");
  const { refused, ...counts } = await writeWekaFolder(folder, traffic);
  const files = counts.sessions === 0 ? [] : readdirSync(folder);
  return { folder, refused: refused.entries(), ...counts, files };
}

const read = async (folder: string): Promise<WorkloadRequest[]> =>
  collected((await openWorkload(folder, { ...IMPORT_DEFAULTS, sharedPrefix: 0 })).requests);

/** All that the format holds, ids by the order in which they come. */
function held(requests: readonly WorkloadRequest[]): object[] {
  const names = new Map<number, number>();
  const known = (id: number): number => {
    if (!names.has(id)) names.set(id, names.size);
    return names.get(id)!;
  };
  return requests
    .toSorted((a, b) => (a.session === b.session ? a.turn - b.turn : a.session < b.session ? -1 : 1))
    .map(({ session, turn: number, parent, joins, thinkMicros, promptTokens, outputTokens, blockIds, model }) => ({
      session,
      number,
      parent,
      joins,
      thinkMicros,
      promptTokens,
      outputTokens,
      model,
      blocks: [...blockIds!].map(known),
    }));
}

test("conversations go out as WEKA's sessions and come back with their turns, think times, sub-agents and shared blocks", async (t) => {
  const { folder, files, ...counts } = await written(t, unobserved(streamed(WORKLOAD)));
  assert.deepEqual(counts, { written: 8, sessions: 2, refused: [] });
  assert.deepEqual(files, ["session_00001.json", "session_00002.json"]);
  assert.deepEqual(held(await read(folder)), held(WORKLOAD));
});

test("what was observed is the service time, and the think times stay", async (t) => {
  const observed = {
    endpoint: "a",
    outcome: "ok",
    ttftMicros: SECOND,
    e2eMicros: 4 * SECOND,
    cachedTokens: NaN,
  } as const;
  async function* traffic(): AsyncGenerator<TrafficRequest> {
    for (const request of WORKLOAD) yield { id: "", request, observed };
  }
  const { folder, files } = await written(t, traffic());
  assert.deepEqual(held(await read(folder)), held(WORKLOAD));
  const { requests } = JSON.parse(readFileSync(join(folder, files[1]!), "utf8")) as { requests: object[] };
  assert.partialDeepStrictEqual(requests, [
    { t: 0, type: "s", in: 133, out: 3, api_time: 4, ttft: 1 },
    { t: 6.000007, api_time: 4, think_time: 2.000007 },
  ]);
});

test("requests of no conversation have no file, and of them alone comes no folder", async (t) => {
  const alone = { ...turn("", 0), index: 0 };
  const { sessions, written: count, refused } = await written(t, unobserved(streamed([alone, alone])));
  assert.deepEqual([sessions, count, refused], [0, 0, [["of no conversation", 2]]]);
});

test("blocks of a learned number of tokens go out as whole ones, which the importer reads", async (t) => {
  const learned = WORKLOAD.map((request) => ({ ...request, blockTokens: 63.998 }));
  const { folder } = await written(t, unobserved(streamed(learned)));
  assert.deepEqual(held(await read(folder)), held(WORKLOAD));
});
