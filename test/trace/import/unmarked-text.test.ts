import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { readAll } from "./read-all.ts";
import { temporaryFolder } from "./temporary-folder.ts";

test("a session file behind a byte order mark is read as one without", async () => {
  await using folder = await temporaryFolder();
  const session = JSON.stringify({
    id: "a",
    block_size: 64,
    hash_id_scope: "local",
    requests: [{ t: 0, type: "n", in: 64, out: 3, hash_ids: [1] }],
  });
  const file = join(folder.path, "session.json");
  await writeFile(file, session);
  const plain = await readAll(file);
  await writeFile(file, `\u{FEFF}${session}`);
  const marked = await readAll(file);
  assert.equal(plain.requests.length, 1);
  assert.deepEqual(marked.requests, plain.requests);
});
