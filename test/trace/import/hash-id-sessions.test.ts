import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { mooncakeLine } from "#trace/export/mooncake-line.ts";
import { TurnCap } from "#trace/transform/cap-workload.ts";
import { Tally } from "#trace/transform/tally.ts";
import type { WorkloadRequest } from "#trace/workload-request.ts";
import { readAll } from "./read-all.ts";
import { temporaryFolder } from "./temporary-folder.ts";

interface Turn {
  readonly session: number;
  readonly turn: number;
  readonly at: number;
}

/** Sessions of many and of few turns, in order of time. */
function turnsOf(lengths: readonly number[]): Turn[] {
  const all = lengths.flatMap((length, session) =>
    Array.from({ length }, (_, turn): Turn => ({ session, turn, at: session * 7 + turn * 101 })),
  );
  return all.sort((a, b) => a.at - b.at || a.session - b.session);
}

async function read(lines: readonly object[]): Promise<readonly WorkloadRequest[]> {
  await using folder = await temporaryFolder();
  const file = join(folder.path, "rows.jsonl");
  await writeFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  const { requests, report } = await readAll(file);
  assert.deepEqual([...report.refused], []);
  return requests;
}

/** The document's build_capped_trace: each session's first turns by (turn, time), in order of time. */
function cappedByTheDocument(turns: readonly Turn[], turnsMax: number): Turn[] {
  const bySession = Map.groupBy(turns, ({ session }) => session);
  return [...bySession.values()]
    .flatMap((one) => one.toSorted((a, b) => a.turn - b.turn || a.at - b.at).slice(0, turnsMax))
    .sort((a, b) => a.at - b.at || a.session - b.session);
}

async function capped(requests: readonly WorkloadRequest[], turnsMax: number): Promise<WorkloadRequest[]> {
  const cap = new TurnCap(turnsMax);
  for (const request of requests) cap.add(request);
  const source = async function* () {
    yield* requests;
  };
  return Array.fromAsync(cap.cap(source(), new Tally()));
}

const LENGTHS = [1, 3, 20, 8, 9, 40, 2];

test("Mooncake rows keep the sessions that they name, so that capping keeps what the document's own does", async () => {
  const turns = turnsOf(LENGTHS);
  const row = ({ session, turn, at }: Turn) => {
    const row = { timestamp: at, input_length: 600, output_length: 3, hash_ids: [0, turn] };
    return { ...row, session_id: session % 2 === 0 ? session : `s${session}`, turn_id: turn };
  };
  const requests = await read(turns.map(row));
  const name = ({ session }: Turn) => (session % 2 === 0 ? String(session) : `s${session}`);
  assert.deepEqual(
    requests.map(({ session, turn }) => [session, turn]),
    turns.map((one) => [name(one), one.turn]),
  );
  for (const turnsMax of [1, 8, 100])
    assert.deepEqual(
      (await capped(requests, turnsMax)).map(({ session, turn }) => [session, turn]),
      cappedByTheDocument(turns, turnsMax).map((one) => [name(one), one.turn]),
    );
  const again = await read(requests.map((one) => JSON.parse(mooncakeLine(one) as string) as object));
  assert.deepEqual(again, requests, "and what is written is read again");
});

test("Bailian's chats are conversations by the chat that they continue, with ids of 16 tokens and times in seconds", async () => {
  const turns = turnsOf(LENGTHS);
  const chatOf = ({ session, turn }: Pick<Turn, "session" | "turn">): number => 1_000 * session + turn;
  const requests = await read(
    turns.map((one) => ({
      chat_id: chatOf(one),
      parent_chat_id: one.turn === 0 ? -1 : chatOf({ ...one, turn: one.turn - 1 }),
      timestamp: one.at / 1_000,
      input_length: 40,
      output_length: 5,
      type: "text",
      turn: one.turn + 1,
      hash_ids: [1, 2, chatOf(one)],
    })),
  );
  assert.deepEqual(
    requests.map(({ session, turn, arrivalMicros, blockTokens }) => [session, turn, arrivalMicros, blockTokens]),
    turns.map((one) => [String(1_000 * one.session), one.turn, one.at * 1_000, 16]),
  );
  assert.equal((await capped(requests, 8)).length, cappedByTheDocument(turns, 8).length);
});

test("a row whose conversation cannot be read is refused by the field that is wrong", async () => {
  const mooncake = { timestamp: 1, input_length: 5, output_length: 1, hash_ids: [1] };
  const wrong: readonly (readonly [object, string])[] = [
    [{ ...mooncake, session_id: {} }, "session_id is not a text or a whole number"],
    [{ ...mooncake, session_id: "a", turn_id: -1 }, "turn_id is not a whole number >= 0"],
    [{ ...mooncake, chat_id: [] }, "chat_id is not a text or a whole number"],
    [{ ...mooncake, chat_id: 1, parent_chat_id: {} }, "parent_chat_id is not a text or a whole number"],
    [{ ...mooncake, chat_id: 1, turn: "x" }, "turn is not a whole number >= 0"],
  ];
  for (const [row, reason] of wrong) {
    await using folder = await temporaryFolder();
    const file = join(folder.path, "rows.jsonl");
    await writeFile(file, `${JSON.stringify(row)}\n`);
    const { report } = await readAll(file);
    assert.deepEqual([...report.refused], [[reason, 1]]);
  }
});
