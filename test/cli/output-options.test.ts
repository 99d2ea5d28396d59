import assert from "node:assert/strict";
import { test } from "node:test";
import type { Command } from "commander";
import { COMMANDS } from "#cli/commands.ts";
import { createProgram, run } from "#cli/program.ts";

/** What a command's action would get from a command line. */
async function optionsOf(line: string): Promise<Readonly<Record<string, unknown>>> {
  const argv = line.split(" ");
  const program = createProgram("0", [await COMMANDS[argv[0]!]!.load()]);
  let command: Command = program;
  for (const word of argv) command = command.commands.find((one) => one.name() === word) ?? command;
  let got: Readonly<Record<string, unknown>> | undefined;
  command.action(() => {
    got = command.opts();
  });
  const complaints: string[] = [];
  assert.equal(await run(program, argv, (complaint) => complaints.push(complaint)), 0, complaints.join());
  return got!;
}

/** A command line of today, the same in older words, and the option that both set. */
const SAME: readonly (readonly [today: string, before: string, name: string, value: string])[] = [
  ["what-if t --json", "what-if t --json -", "json", "-"],
  ["what-if --json t", "what-if --json - t", "json", "-"],
  ["calibrate t --json", "calibrate t --json -", "json", "-"],
  ["tune t -o p.yaml", "tune t --write-profile p.yaml", "writeProfile", "p.yaml"],
  ["tune t --json", "tune --json - t", "json", "-"],
  ["rollout plan t -o r.yaml", "rollout plan t --write r.yaml", "write", "r.yaml"],
  ["rollout plan t --json", "rollout plan t --json -", "json", "-"],
  ["sweep s.yaml --output r.jsonl", "sweep s.yaml --out r.jsonl", "out", "r.jsonl"],
  ["simulate -o r.json", "simulate --results-path r.json", "resultsPath", "r.json"],
  ["drive --url http://127.0.0.1:1 --json", "drive --url http://127.0.0.1:1 --json=-", "json", "-"],
];

for (const [today, before, name, value] of SAME) {
  test(`${before}, as it was once written, is ${today}`, async () => {
    assert.equal((await optionsOf(today))[name], value);
    assert.equal((await optionsOf(before))[name], value);
  });
}

test("a file behind --json, and one behind --html, are still written", async () => {
  for (const command of [
    "what-if t",
    "rollout judge t",
    "rollout plan t",
    "drive --url http://127.0.0.1:1",
    "tune t",
  ]) {
    for (const words of ["--json a.json", "--json=a.json"]) {
      assert.equal((await optionsOf(`${command} ${words}`))["json"], "a.json");
    }
  }
  assert.equal((await optionsOf("what-if t --html a.html"))["html"], "a.html");
});

test("--json takes no word in any command, and -o is --output", async () => {
  const walk = (command: Command): Command[] => [command, ...command.commands.flatMap(walk)];
  const all = (await Promise.all(Object.values(COMMANDS).map(({ load }) => load()))).flatMap(walk);
  const options = all.flatMap((command) => command.options.filter(({ hidden }) => !hidden));
  const jsons = options.filter(({ long }) => long === "--json");
  assert.ok(jsons.length >= 12, `${jsons.length}`);
  assert.deepEqual(
    jsons.filter((option) => option.required || option.optional),
    [],
  );
  assert.deepEqual([...new Set(options.filter(({ short }) => short === "-o").map(({ long }) => long))], ["--output"]);
});
