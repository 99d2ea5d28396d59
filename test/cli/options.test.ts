import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CommanderError, type Command, type Option } from "commander";
import fc from "fast-check";
import { COMMANDS } from "#cli/commands.ts";
import { createProgram } from "#cli/program.ts";

/** One of them is accepted by every option that takes a value. */
const VALUES = [
  "1",
  "2..3",
  "100",
  "10000",
  "0.5",
  "name:1",
  "a@1",
  "baseMicros=1",
  "level=1",
  "1:2",
  "x-name: 1",
  "http://127.0.0.1:1",
  "*:1:1:1",

  "switchback",
  "queue-depth",
];
/** Arguments of a command that takes several are so many. */
const SEVERAL = 3;

interface Parsed {
  readonly args: readonly string[];
  readonly options: Readonly<Record<string, unknown>>;
}

/** The program anew with nothing behind its commands, since what is parsed stays in them. */
async function parsed(words: readonly string[], argv: readonly string[]): Promise<Parsed> {
  const program = createProgram("0", [await COMMANDS[words[0]!]!.load()]);
  let result: Parsed | undefined;
  const leaf = below(program, words);
  leaf.action(() => {
    result = { args: leaf.args, options: leaf.opts() };
  });
  // Each option is tried alone too.
  for (const option of leaf.options) option.mandatory = false;
  for (const argument of leaf.registeredArguments) argument.required = false;
  await program.parseAsync([...words, ...argv], { from: "user" });
  return result!;
}

function below(program: Command, words: readonly string[]): Command {
  return words.reduce((command, word) => command.commands.find((one) => one.name() === word)!, program);
}

/** Every command that does something, by its words. */
async function leaves(): Promise<{ readonly words: readonly string[]; readonly command: Command }[]> {
  const walk = (command: Command, words: readonly string[]): { words: readonly string[]; command: Command }[] =>
    command.commands.length === 0
      ? [{ words, command }]
      : command.commands.flatMap((one) => walk(one, [...words, one.name()]));
  const all = await Promise.all(Object.values(COMMANDS).map(({ load }) => load()));
  return all.flatMap((command) => walk(command, [command.name()]));
}

/** The words that give an option, with the first value that it accepts. */
async function given(words: readonly string[], option: Option): Promise<string[]> {
  const flag = option.long ?? option.short!;
  if (option.isBoolean()) return [flag];
  for (const value of [...(option.argChoices ?? []), ...VALUES]) {
    try {
      await parsed(words, [flag, value]);
      return [flag, value];
    } catch (error) {
      if (!(error instanceof CommanderError)) throw error;
    }
  }
  throw new Error(`${words.join(" ")} ${option.flags}: no value of ${VALUES.join(" ")} is accepted`);
}

describe("options and arguments of every command", async () => {
  const commands = await leaves();

  test("no option takes more than one word", () => {
    assert.ok(commands.length > 40, `${commands.length}`);
    const taking = commands.flatMap(({ words, command }) =>
      command.options
        .filter((option) => option.variadic || option.optional)
        .map(({ flags }) => `${words.join(" ")} ${flags}`),
    );
    assert.deepEqual(taking, []);
  });

  for (const { words, command } of commands) {
    test(`${words.join(" ")}: arguments stay arguments, before, between and behind any options`, async () => {
      // Of an option and its --no-, the last one counts.
      const options = command.options.filter(({ hidden, negate }) => !hidden && !negate);
      const texts = await Promise.all(options.map((option) => given(words, option)));
      const alone = await Promise.all(texts.map(async (text) => (await parsed(words, text)).options));
      const args = command.registeredArguments.flatMap(({ variadic }, i) =>
        Array.from({ length: variadic ? SEVERAL : 1 }, (_, j) => `argument-${i}-${j}`),
      );
      const choice = fc.record({
        chosen: fc.shuffledSubarray(texts),
        places: fc.array(fc.nat(), { minLength: args.length, maxLength: args.length }),
        asShown: fc.boolean(),
      });
      await fc.assert(
        fc.asyncProperty(choice, async ({ chosen, places, asShown }) => {
          // The usage line shows options first.
          const at = places
            .map((place) => (asShown ? chosen.length : place % (chosen.length + 1)))
            .toSorted((a, b) => a - b);
          const argv = [...chosen, []].flatMap((text, i) => [...args.filter((_, j) => at[j] === i), ...text]);
          const all = await parsed(words, argv);
          assert.deepEqual(all.args, args, argv.join(" "));
          for (const text of chosen) {
            const which = texts.indexOf(text);
            const name = options[which]!.attributeName();
            assert.deepEqual(all.options[name], alone[which]![name], `${text.join(" ")} of ${argv.join(" ")}`);
          }
        }),
        { numRuns: 20, examples: [[{ chosen: texts, places: args.map(() => 0), asShown: true }]] },
      );
    });
  }
});
