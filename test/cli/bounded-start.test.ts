import assert from "node:assert/strict";
import { fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, describe, test } from "node:test";

const BIN = resolve(import.meta.dirname, "../../bin");
const SHOWS_START = `
import v8 from "node:v8";
const kept = [];
for (let i = 0; i < 2e6; i++) { const o = { i }; if (i % 10 === 0) kept.push(o); if (kept.length > 1e5) kept.length = 0; }
const young = v8.getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space").space_size / 1e6;
const start = { young, pid: process.pid, flags: process.execArgv, argv: process.argv.slice(2), arenas: process.env.MALLOC_ARENA_MAX };
if (process.send) process.send(start, () => process.exit()); else process.stdout.write(JSON.stringify(start));
`;

interface Start {
  readonly young: number;
  readonly flags: readonly string[];
  readonly argv: readonly string[];
  readonly arenas?: string;
}

describe("the start of a server", { skip: process.platform === "win32" }, () => {
  const place = mkdtempSync(join(tmpdir(), "gnomon-bounded-"));
  const bin = join(place, "bin/gnomon.mjs");
  mkdirSync(join(place, "src/serve/process"), { recursive: true });
  cpSync(BIN, join(place, "bin"), { recursive: true });
  copyFileSync(join(BIN, "gnomon.js"), bin);
  writeFileSync(join(place, "src/main.ts"), SHOWS_START);
  writeFileSync(join(place, "src/serve/process/early-stop.ts"), "export function stopEarly() {}\n");
  after(() => rmSync(place, { recursive: true }));

  const { NODE_OPTIONS: _, MALLOC_ARENA_MAX: __, ...environment } = process.env;
  const begun = (argv: readonly string[], flags: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Start => {
    const { stdout, stderr } = spawnSync(process.execPath, [...flags, bin, ...argv], {
      env: { ...environment, ...env },
      encoding: "utf8",
    });
    assert.notEqual(stdout, "", stderr);
    return JSON.parse(stdout) as Start;
  };

  test("bounds its memory, whatever flags it was given, and keeps them", () => {
    for (const argv of [[], ["serve", "--port", "0"], ["--port", "0"], ["tap", "--to", "http://127.0.0.1:1"]]) {
      const { young, flags, arenas, argv: seen } = begun(argv, ["--no-warnings"]);
      assert.ok(young <= 34, `${young} MB of young objects`);
      assert.deepEqual(flags, ["--max-semi-space-size=16", "--no-warnings"]);
      assert.deepEqual([seen, arenas], [argv, "2"]);
    }
  });

  test("has the bounds of who starts it, where he has some", () => {
    assert.deepEqual(begun(["serve"], ["--max-semi-space-size=4"]).flags, ["--max-semi-space-size=4"]);
    assert.deepEqual(begun(["serve"], [], { NODE_OPTIONS: "--max-semi-space-size=4" }).flags, []);
    assert.equal(begun(["serve"], [], { MALLOC_ARENA_MAX: "3" }).arenas, "3");
  });

  test("is one start where nothing is served, or a parent has a channel to it", async () => {
    for (const argv of [["simulate"], ["--help"], ["what-if", "trace"]]) assert.deepEqual(begun(argv).flags, []);
    const child = fork(bin, ["serve"], { execArgv: [], env: environment });
    const [start] = (await once(child, "message")) as [Start];
    assert.deepEqual(start.flags, []);
  });
});
