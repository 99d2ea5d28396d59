import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { describe, it } from "node:test";
import { golden } from "../trace/import/read-all.ts";
import { startStubEngine } from "./stub-engine.ts";

const MAIN = join(import.meta.dirname, "../../bin/gnomon.js");

describe("an interrupted run", () => {
  for (const [interrupts, outcome] of [
    [1, /2 ok/],
    [2, /2 cancelled at the end/],
  ] as const)
    it(`prints what it has after ${interrupts}`, async () => {
      // One interrupt lets answers end; two are needed where none ever does.
      const engine = await startStubEngine(interrupts > 1 ? { answer: () => true } : { tokenMillis: 20 });
      // Two requests come soon; the third much later.
      const argv = ["drive", "--url", engine.url, "--trace", golden("azure.csv"), "--time-scale", "5"];
      const child = spawn(process.execPath, [MAIN, ...argv, "--max-output-tokens", "8"]);
      let [table, complaints] = ["", ""];
      child.stdout.on("data", (part) => (table += String(part)));
      child.stderr.on("data", (part) => (complaints += String(part)));
      const exit = once(child, "exit");
      // A program that ends early must not leave the test waiting.
      const until = async (holds: () => boolean) => {
        while (!holds() && child.exitCode === null) await new Promise((resolve) => setTimeout(resolve, 5));
      };
      await until(() => engine.requests.length >= 2);
      child.kill("SIGINT");
      if (interrupts > 1) {
        await until(() => complaints.includes("interrupt again"));
        // One that comes with the first is the same, forwarded by a parent.
        await until(() => complaints.includes("closing") || !child.kill("SIGINT"));
      }
      const [code] = (await exit) as [number];
      await engine.close();
      assert.equal(code, 130, complaints);
      assert.match(table, outcome);
      assert.match(table, /interrupted: 2 sent/);
      assert.match(complaints, /interrupted/);
    });
});
