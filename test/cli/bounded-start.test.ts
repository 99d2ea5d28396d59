import assert from "node:assert/strict";
import { fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, describe, test } from "node:test";

const BIN = resolve(import.meta.dirname, "../../bin");
/** What glibc reads is what a process was started with, not what it set since. */
const SHOWS_START = `
import { readFileSync } from "node:fs";
const arenas = /(?:^|\\0)MALLOC_ARENA_MAX=([^\\0]*)/.exec(readFileSync("/proc/self/environ", "latin1"))?.[1] ?? "none";
const start = { flags: process.execArgv, argv: process.argv.slice(2), arenas };
if (process.send) process.send(start, () => process.exit()); else process.stdout.write(JSON.stringify(start));
`;

interface Start {
  readonly flags: readonly string[];
  readonly argv: readonly string[];
  /** As the C library saw it. */
  readonly arenas: string;
}

describe("the start of a server", { skip: process.platform !== "linux" }, () => {
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

  test("has two arenas of memory, whatever flags it was given, and keeps them", () => {
    for (const argv of [[], ["serve", "--port", "0"], ["--port", "0"], ["tap", "--to", "http://127.0.0.1:1"]])
      assert.deepEqual(begun(argv, ["--no-warnings"]), { flags: ["--no-warnings"], argv, arenas: "2" });
  });

  test("keeps the number of MALLOC_ARENA_MAX, where that is set", () => {
    assert.equal(begun(["serve"], [], { MALLOC_ARENA_MAX: "3" }).arenas, "3");
  });

  test("is one start where nothing is served, or a parent has a channel to it", async () => {
    for (const argv of [["simulate"], ["--help"], ["what-if", "trace"]]) assert.equal(begun(argv).arenas, "none");
    const child = fork(bin, ["serve"], { execArgv: [], env: environment });
    const [start] = (await once(child, "message")) as [Start];
    assert.equal(start.arenas, "none");
  });
});
