import assert from "node:assert/strict";
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { TableFolder } from "#live/tokenizer/table/table-folder.ts";
import { smallTable } from "./small-table.ts";

const KEY = "k".repeat(40);

describe("a folder of tables", () => {
  let parent: string;
  let path: string;
  let folder: TableFolder;
  beforeEach(() => {
    parent = mkdtempSync(join(tmpdir(), "gnomon-tables-"));
    path = join(parent, "deep", "tables");
    folder = new TableFolder(path);
  });
  afterEach(() => rmSync(parent, { recursive: true, force: true }));

  const bytes = (table: SharedArrayBuffer | undefined): Buffer | undefined =>
    table && Buffer.from(new Uint8Array(table));

  test("a table that was kept is read back, byte by byte, by others too", () => {
    assert.equal(folder.read(KEY), undefined);
    assert.equal(folder.write(KEY, smallTable()), undefined);
    assert.deepEqual(bytes(new TableFolder(path).read(KEY)), bytes(smallTable()));
    assert.equal(folder.read("another"), undefined);
    assert.deepEqual(readdirSync(path), [`${KEY}.bpe`]);
  });

  test("a file that was cut short or changed is not read, and goes", () => {
    const file = join(path, `${KEY}.bpe`);
    const damages: readonly (() => void)[] = [
      () => truncateSync(file, 100),
      () => truncateSync(file, 0),
      () => writeFileSync(file, readFileSync(file).fill(0, 400, 404)),
      () => writeFileSync(file, "something else"),
    ];
    for (const damage of damages) {
      assert.equal(folder.write(KEY, smallTable()), undefined);
      damage();
      assert.equal(folder.read(KEY), undefined);
      assert.deepEqual(readdirSync(path), []);
    }
  });

  test("a folder that others may write to is not trusted", () => {
    folder.write(KEY, smallTable());
    chmodSync(path, 0o777);
    assert.equal(folder.read(KEY), undefined);
    assert.match(folder.write(KEY, smallTable())!, /may be written by others/);
    chmodSync(path, 0o700);
    assert.ok(folder.read(KEY) !== undefined);
  });

  test("a folder that cannot be had is done without, and why is reported", () => {
    writeFileSync(join(parent, "file"), "");
    const none = new TableFolder(join(parent, "file", "tables"));
    assert.equal(none.read(KEY), undefined);
    assert.match(none.write(KEY, smallTable())!, /ENOTDIR/);
  });

  test("eight tables are kept, the least recently used one goes; what a killed process left goes too", () => {
    const date = (name: string, seconds: number): void => utimesSync(join(path, name), seconds, seconds);
    for (let i = 0; i < 8; i++) {
      folder.write(`key-${i}`, smallTable(i));
      date(`key-${i}.bpe`, 1_000 + i);
    }
    for (const name of ["old.part", "new.part"]) writeFileSync(join(path, name), "half");
    date("old.part", 1_000);
    assert.ok(folder.read("key-0") !== undefined);
    folder.write("key-8", smallTable(8));
    const left = readdirSync(path).sort();
    assert.deepEqual(left, [...[0, 2, 3, 4, 5, 6, 7, 8].map((i) => `key-${i}.bpe`), "new.part"]);
  });
});
