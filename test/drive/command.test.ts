import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it } from "node:test";
import { CommanderError } from "commander";
import { driveCommand } from "#drive/command.ts";
import type { DriveReport } from "#drive/report.ts";
import { golden } from "../trace/import/read-all.ts";
import { temporaryFolder } from "../trace/import/temporary-folder.ts";
import { startStubEngine } from "./stub-engine.ts";

/** Runs the command; the table goes nowhere. Resolves with the exit code and the complaint. */
async function run(...argv: string[]): Promise<{ code: number; message: string }> {
  const command = driveCommand()
    .exitOverride()
    .configureOutput({ outputError: () => {}, writeErr: () => {} });
  try {
    await command.parseAsync(argv, { from: "user" });
    return { code: 0, message: "" };
  } catch (error) {
    assert.ok(error instanceof CommanderError, String(error));
    return { code: error.exitCode, message: error.message };
  }
}

describe("gnomon drive", () => {
  const wrong: [string[], RegExp][] = [
    [["--trace", "x"], /--url/],
    [["--url", "http://127.0.0.1:1"], /one of --trace, --sessions and --spec/],
    [["--url", "http://127.0.0.1:1", "--trace", "x", "--spec", "y"], /one of --trace, --sessions and --spec/],
    [["--url", "ftp://x", "--trace", "x"], /http:\/\/ or https:\/\//],
    [["--url", "nonsense", "--trace", "x"], /--url.*expected a URL/],
    [["--url", "http://127.0.0.1:1", "--trace", "x", "--rate-scale", "0"], /--rate-scale.*above 0/],
    [["--url", "http://127.0.0.1:1", "--trace", "x", "--abort-fraction", "2"], /--abort-fraction.*in \[0, 1\]/],
    [["--url", "http://127.0.0.1:1", "--trace", "x", "--concurrency", "1.5"], /--concurrency.*whole number/],
    [["--url", "http://127.0.0.1:1", "--trace", "x", "--api", "responses"], /--api.*completions, chat/],
    [["--url", "http://127.0.0.1:1", "--trace", "x", "--api", "chat", "--prompt-form", "tokens"], /--api completions/],
    [
      ["--url", "http://127.0.0.1:1", "--trace", "x", "--api-key-env", "GNOMON_TEST_UNSET"],
      /GNOMON_TEST_UNSET is not set/,
    ],
    [["--url", "http://127.0.0.1:1", "--trace", "x", "--header", "no colon"], /--header.*name: value/],
    [["--url", "http://127.0.0.1:1", "--trace", "x", "--speed", "3"], /--speed/],
    [
      ["--url", "http://127.0.0.1:1", "--trace", "/nonexistent/trace.jsonl", "--model", "m"],
      /trace\.jsonl: no such file/,
    ],
    [["--url", "http://127.0.0.1:1", "--trace", golden("README.md"), "--model", "m"], /README\.md: not a workload/],
    [
      ["--url", "http://127.0.0.1:1", "--trace", golden("azure.csv"), "--output", "/nonexistent/report.json"],
      /--output: .*\/nonexistent\/report\.json/,
    ],
    [
      ["--url", "http://127.0.0.1:1", "--trace", golden("azure.csv"), "--requests-out", "/nonexistent/log"],
      /--requests-out: .*\/nonexistent\/log/,
    ],
  ];
  for (const [argv, message] of wrong)
    it(`refuses ${argv.slice(-2).join(" ")}`, async () => {
      const { code, message: said } = await run(...argv);
      assert.match(said, message);
      assert.notEqual(code, 0);
    });

  it("reports when there is nobody to ask for a model", async () => {
    const { code, message } = await run("--url", "http://127.0.0.1:1", "--trace", golden("azure.csv"));
    assert.equal(code, 2);
    assert.match(message, /no model to ask for: .*--model/);
  });

  it("prints the table and writes the report, and fails with 1 when a request failed", async () => {
    await using folder = await temporaryFolder();
    const json = join(folder.path, "report.json");
    let n = 0;
    const engine = await startStubEngine({
      answer: (_, response) => {
        if (n++ > 0) return false;
        response.writeHead(500, { "content-type": "application/json" }).end("{}");
        return true;
      },
    });
    const argv = ["--url", engine.url, "--trace", golden("mooncake.jsonl"), "--time-scale", "0.001", "--output", json];
    const table = await captured(() => run(...argv).then(({ code }) => assert.equal(code, 1)));
    const report = JSON.parse(await readFile(json, "utf8")) as DriveReport;
    assert.equal(report.requests.failed, 1);
    assert.deepEqual(report.outcomes, { "http-500": 1, ok: 7 });
    for (const words of [/TTFT/, /TPOT/, /E2E/, /7 ok, 1 failed/, /1 http-500/, /of 10 records left out: not JSON/])
      assert.match(table, words);
    const again = await captured(() => run(...argv).then(({ code }) => assert.equal(code, 0)));
    assert.match(again, /8 ok, 0 failed/);
    await engine.close();
  });
});

async function captured(work: () => Promise<void>): Promise<string> {
  const write = process.stdout.write.bind(process.stdout);
  let text = "";
  process.stdout.write = (part: string | Uint8Array) => {
    text += String(part);
    return true;
  };
  try {
    await work();
  } finally {
    process.stdout.write = write;
  }
  return text;
}
