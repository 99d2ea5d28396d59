import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { describe, test, type TestContext } from "node:test";

const BIN = resolve(import.meta.dirname, "../../bin/gnomon.js");
const OLD = "20.20.2";
const VERSION = /^\d+\.\d+\.\d+\n$/;
/** Makes a Node say that it is an old one. */
const AS_OLD = [
  "--import",
  `data:text/javascript,Object.defineProperty(process,"versions",{value:{...process.versions,node:"${OLD}"}})`,
];

/** Ends a while after the first interrupt, with their number. */
const COUNTS_INTERRUPTS = `
let interrupts = 0;
process.on("SIGINT", () => {
  if (++interrupts === 1) setTimeout(() => process.exit(interrupts), 500);
});
setTimeout(() => process.exit(99), 20_000);
process.stdout.write("ready");
`;

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly complaint: string;
}

function start(args: readonly string[], bin = BIN): { child: ChildProcess; ended: Promise<Ended>; out: () => string } {
  const child = spawn(
    process.execPath,
    [...args.slice(0, args.indexOf("--")), bin, ...args.slice(args.indexOf("--") + 1)],
    {
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  let out = "";
  let complaint = "";
  child.stdout?.setEncoding("utf8").on("data", (text: string) => (out += text));
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (complaint += text));
  const ended = once(child, "close").then(([code]) => ({ code: code as number | null, out, complaint }));
  return { child, ended, out: () => out };
}

/** The command with the sources and a Node of its own beside it, as it is where the system's is too old. */
function withOwnNode(t: TestContext): string {
  const place = mkdtempSync(join(tmpdir(), "gnomon-bin-"));
  t.after(() => rmSync(place, { recursive: true, force: true, maxRetries: 3 }));
  for (const folder of ["bin", "node_modules/node/bin"]) mkdirSync(join(place, folder), { recursive: true });
  copyFileSync(BIN, join(place, "bin/gnomon.mjs"));
  symlinkSync(process.execPath, join(place, "node_modules/node/bin/node"));
  symlinkSync(resolve(import.meta.dirname, "../../src"), join(place, "src"));
  return join(place, "bin/gnomon.mjs");
}

describe("the command gnomon", () => {
  test("runs under a Node that can read it", async () => {
    assert.match((await start(["--", "--version"]).ended).out, VERSION);
  });

  test("an older Node hands over to the one among the dependencies, and ends as that does", async (t) => {
    const bin = withOwnNode(t);
    const asked = await start([...AS_OLD, "--", "--version"], bin).ended;
    assert.equal(asked.code, 0, asked.complaint);
    assert.match(asked.out, VERSION);
    const refused = await start([...AS_OLD, "--", "explain", "--no-such-flag"], bin).ended;
    assert.equal(refused.code, 2);
    assert.match(refused.complaint, /no-such-flag/);
  });

  test("an older Node passes a signal on and waits", async (t) => {
    const args = [...AS_OLD, "--", "emulate", "--count", "1", "--port-base", "0"];
    const { child, ended, out } = start(args, withOwnNode(t));
    while (!out().includes("gnomon emulates")) {
      await Promise.race([once(child.stdout!, "data"), ended.then(({ complaint }) => assert.fail(complaint))]);
    }
    child.kill("SIGTERM");
    assert.equal((await ended).code, 0);
  });

  test("a signal to the whole group, as from a terminal, is passed on once", async () => {
    const place = mkdtempSync(join(tmpdir(), "gnomon-bin-"));
    try {
      for (const folder of ["bin", "src", "node_modules/node/bin"]) mkdirSync(join(place, folder), { recursive: true });
      const bin = join(place, "bin", "gnomon.mjs");
      copyFileSync(BIN, bin);
      symlinkSync(process.execPath, join(place, "node_modules/node/bin/node"));
      writeFileSync(join(place, "src/main.ts"), COUNTS_INTERRUPTS);
      const child = spawn(process.execPath, [...AS_OLD, bin], { stdio: ["ignore", "pipe", "inherit"], detached: true });
      await once(child.stdout, "data");
      process.kill(-child.pid!, "SIGINT");
      assert.deepEqual(await once(child, "exit"), [1, null]);
    } finally {
      rmSync(place, { recursive: true });
    }
  });

  test("without any Node that can read it, what is missing is reported", async () => {
    const place = mkdtempSync(join(tmpdir(), "gnomon-bin-"));
    try {
      mkdirSync(join(place, "bin"));
      const bin = join(place, "bin", "gnomon.mjs");
      copyFileSync(BIN, bin);
      const { code, complaint } = await start([...AS_OLD, "--", "--help"], bin).ended;
      assert.equal(code, 1);
      assert.equal(
        complaint,
        `gnomon: expected Node 24.12 or later, got ${OLD}; "npm ci" in its sources brings one along\n`,
      );
    } finally {
      rmSync(place, { recursive: true });
    }
  });
});
