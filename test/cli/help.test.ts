import assert from "node:assert/strict";
import { test } from "node:test";
import type { Command } from "commander";
import { COMMANDS } from "#cli/commands.ts";
import { EXAMPLES } from "#cli/examples.ts";
import { createProgram, run } from "#cli/program.ts";
import { RARE } from "#drive/rare-option.ts";

const SCREEN_LINES = 30;
const SCREEN_COLUMNS = 80;
/** Two screens of a command's own help. */
const HELP_LINES_MAX = 60;

const loaded = await Promise.all(Object.values(COMMANDS).map(({ load }) => load()));

/** What a command line prints, by a program whose commands are made anew, since what was asked stays in them. */
async function printed(...argv: string[]): Promise<string> {
  const commands = await Promise.all(Object.values(COMMANDS).map(({ load }) => load()));
  const program = createProgram("1.2.3", commands);
  let out = "";
  for (const command of [program, ...commands, ...commands.flatMap((one) => one.commands)])
    command.configureOutput({ writeOut: (text) => (out += text), getOutHelpWidth: () => SCREEN_COLUMNS });
  const complaints: string[] = [];
  assert.equal(await run(program, argv, (line) => complaints.push(line)), 0, complaints.join("\n"));
  return out;
}

/** Every command by its words, those that have others below them too. */
const BY_WORDS: readonly (readonly [string, Command])[] = loaded.flatMap((command) => [
  [command.name(), command] as const,
  ...command.commands.map((nested) => [`${command.name()} ${nested.name()}`, nested] as const),
]);

test("the help fits a screen, with a line for every command that is no other name of one", async () => {
  const help = await printed("--help");
  const lines = help.trimEnd().split("\n");
  assert.ok(lines.length <= SCREEN_LINES, `${lines.length} lines`);
  assert.deepEqual(
    lines.filter((line) => line.length > SCREEN_COLUMNS + 10),
    [],
  );
  for (const [name, { summary, isAlias }] of Object.entries(COMMANDS))
    assert.equal(help.includes(` ${name} `) && help.includes(summary), isAlias !== true, name);
});

test("--help-all names every command and every option of every command", async () => {
  const sections = (await printed("--help-all")).split(/\n\n(?=gnomon )/);
  assert.equal(sections.length, BY_WORDS.length);
  for (const [words, command] of BY_WORDS) {
    const section = sections.find((one) => one.startsWith(`gnomon ${words} [options]`)) ?? "";
    for (const { flags, long, hidden } of command.options)
      if (long !== "--help-all") assert.equal(section.includes(`  ${flags} `), !hidden, `${words} ${flags}`);
  }
});

for (const [words] of BY_WORDS) {
  test(`${words} --help begins with an example and leaves out rare options; --help-all has all`, async () => {
    const [usual, all] = [
      await printed(...words.split(" "), "--help"),
      await printed(...words.split(" "), "--help-all"),
    ];
    const example = EXAMPLES[words] ?? "";
    assert.ok(usual.startsWith(`Example: ${example}\n`) && example !== "", usual.slice(0, 80));
    assert.doesNotMatch(all.replaceAll(/\s+/g, " "), /default: (?:\[\]|false)/, "a default that says nothing");
    assert.ok(usual.split("\n").length <= HELP_LINES_MAX, `${usual.split("\n").length} lines`);
    const command = BY_WORDS.find(([name]) => name === words)![1];
    for (const { long, hidden, helpGroupHeading } of command.options) {
      const shows = (text: string) => new RegExp(`^  (?:-\\w, )?${long}\\b(?!-)`, "m").test(text);
      assert.equal(shows(usual), !hidden && helpGroupHeading !== RARE, `${long} in the help`);
      assert.equal(shows(all), !hidden, `${long} in all of it`);
    }
  });
}

test("every example is one of its command, with options that it has and does not call rare", () => {
  assert.deepEqual(Object.keys(EXAMPLES).sort(), BY_WORDS.map(([words]) => words).sort());
  for (const [words, command] of BY_WORDS) {
    const [, rest = ""] = /(?:^|\| )gnomon (.*)$/.exec(EXAMPLES[words]!) ?? [];
    assert.ok(rest.startsWith(words), `${words}: ${rest}`);
    const leaf = BY_WORDS.findLast(([name]) => rest === name || rest.startsWith(`${name} `))![1];
    const usual = leaf.options.filter(({ helpGroupHeading }) => helpGroupHeading !== RARE);
    for (const [flag] of rest.matchAll(/(?<= )--?[a-z][\w-]*/g))
      assert.ok(
        usual.some(({ short, long }) => flag === short || flag === long),
        `${words}: ${flag}`,
      );
    void command;
  }
});
