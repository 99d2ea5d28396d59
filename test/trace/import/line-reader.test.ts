import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { gzipSync, zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { ImportError } from "#trace/import/import-report.ts";
import { readLines } from "#trace/import/line-reader.ts";
import { temporaryFolder } from "./temporary-folder.ts";

async function linesOf(path: string): Promise<[number, string][]> {
  const lines: [number, string][] = [];
  for await (const line of readLines(path)) lines.push([line.number, line.text]);
  return lines;
}

describe("lines of a file", () => {
  it("are those of the text, numbered, without blank ones and line ends", async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, "any.txt");
    const texts = fc.array(fc.oneof(fc.string(), fc.constant(""), fc.string({ unit: "grapheme" })), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(texts, fc.constantFrom("\n", "\r\n"), fc.boolean(), async (lines, end, endsOpen) => {
        const clean = lines.map((line) => line.replaceAll(/[\r\n]/g, "").toWellFormed());
        await writeFile(file, clean.join(end) + (endsOpen ? "" : end));
        const expected = clean.map((text, i) => [i + 1, text]).filter(([, text]) => String(text).trim() !== "");
        assert.deepEqual(await linesOf(file), expected);
      }),
      { numRuns: 60 },
    );
  });

  it("begin behind a byte order mark", async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, "marked.jsonl");
    await writeFile(file, "\u{FEFF}first\r\n\u{FEFF}second\r\n");
    assert.deepEqual(await linesOf(file), [
      [1, "first"],
      [2, "\u{FEFF}second"],
    ]);
  });

  it("survive any cut into chunks, and compression", async () => {
    await using folder = await temporaryFolder();
    // Longer than the read buffer, so that lines are cut inside characters.
    const lines = Array.from({ length: 5_000 }, (_, i) => `${i} ${"äöü€😀".repeat(i % 40)}`);
    const text = Buffer.from(lines.join("\n"));
    const files = { "a.txt": text, "a.gz": gzipSync(text), "a.zst": zstdCompressSync(text) };
    for (const [name, bytes] of Object.entries(files)) {
      const file = join(folder.path, name);
      await writeFile(file, bytes);
      assert.deepEqual(
        (await linesOf(file)).map(([, line]) => line),
        lines,
        name,
      );
    }
  });

  it("that are too long are reported, and the next ones are read", async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, "long.txt");
    await writeFile(file, ["short", "x".repeat(1_000_000), "x".repeat(101), "x".repeat(100), "end"].join("\n"));
    const lines = [];
    for await (const { number, text, tooLong } of readLines(file, 100)) lines.push([number, text.length, tooLong]);
    const expected = [
      [1, 5, false],
      [2, 0, true],
      [3, 0, true],
      [4, 100, false],
      [5, 3, false],
    ];
    assert.deepEqual(lines, expected);
  });

  it("of a small compressed file that becomes large without end are an error that names it", async () => {
    await using folder = await temporaryFolder();
    const rest = Buffer.alloc(80_000_000, "\n");
    for (const [name, bytes] of Object.entries({ "a.gz": gzipSync(rest), "a.zst": zstdCompressSync(rest) })) {
      const path = join(folder.path, name);
      // gzip comes to a thousandth at best.
      const isRefused = bytes.length < 30_000;
      await writeFile(path, bytes);
      if (isRefused) await assert.rejects(linesOf(path), new RegExp(`${name}: .*at most 1000 times as large`));
      else assert.deepEqual(await linesOf(path), []);
    }
  });

  it("of what is no file, or broken, are an error that names it", async () => {
    await using folder = await temporaryFolder();
    const broken = join(folder.path, "broken.jsonl.gz");
    await writeFile(broken, "this is not gzip");
    for (const path of [join(folder.path, "absent"), folder.path, broken])
      await assert.rejects(linesOf(path), (error) => error instanceof ImportError && error.message.startsWith(path));
  });
});
