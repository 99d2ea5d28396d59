import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { detectFormat } from "#trace/import/detect-format.ts";
import { ImportError } from "#trace/import/import-report.ts";
import { golden } from "./read-all.ts";
import { temporaryFolder } from "./temporary-folder.ts";

describe("the format of a workload", () => {
  for (const [name, format, files] of [
    ["mooncake.jsonl", "mooncake", 1],
    ["azure.csv", "azure", 1],
    ["weka", "weka", 4],
    ["weka/trace_b.json", "weka", 1],
    ["lmcache", "lmcache", 2],
    ["lmcache/one.jsonl", "lmcache", 1],
    ["token-ids.jsonl", "token-ids", 1],
    ["spec.yaml", "synthetic", 1],
  ] as const)
    it(`is known: ${name}`, async () => {
      const detected = await detectFormat(golden(name));
      assert.equal(detected.format, format);
      assert.equal(detected.files.length, files);
    });

  it("is refused with the accepted ones when it is another", async () => {
    await using folder = await temporaryFolder();
    const other = join(folder.path, "other.jsonl");
    await writeFile(other, '{"a": 1}\n{"b": 2}\n');
    const empty = join(folder.path, "empty.jsonl");
    await writeFile(empty, "");
    const hollow = join(folder.path, "hollow");
    await mkdir(hollow);
    const mixed = join(folder.path, "mixed");
    await mkdir(mixed);
    await writeFile(join(mixed, "a.jsonl"), '{"hash_ids": [], "input_length": 1}\n');
    for (const path of [other, empty, hollow, mixed])
      await assert.rejects(detectFormat(path), (error) => {
        assert.ok(error instanceof ImportError);
        assert.ok(error.message.startsWith(path));
        for (const format of ["mooncake", "azure", "weka", "lmcache", "token-ids", "synthetic"])
          assert.match(error.message, new RegExp(`^ {2}${format} `, "m"));
        return true;
      });
    await assert.rejects(detectFormat(join(folder.path, "absent")), /absent: no such file or folder/);
    const half = join(folder.path, "half");
    await mkdir(half);
    await writeFile(join(half, "meta.json"), "{}");
    await assert.rejects(detectFormat(half), /half: expected requests\.jsonl beside meta\.json/);
  });

  it("is seen past a broken first line", async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, "torn.jsonl");
    await writeFile(file, 'orn": 1}\n{"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[1]}\n');
    assert.equal((await detectFormat(file)).format, "mooncake");
  });
});
