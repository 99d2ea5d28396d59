import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { BENCHES } from "../../bench/catalogue.ts";
import { blocksOf, commitOf, withFigures } from "../../bench/release/page-block.ts";

const BENCH = join(import.meta.dirname, "../../bench");
const PAGES = globSync("*.md", { cwd: join(BENCH, "pages") }).sort();
const INDEX_LINES_MAX = 60;
const PAGE_WORDS_MAX = 900;
const ORIGIN = { commit: "12345678", date: "2026-01-02", machine: "2 cores" };

const read = (page: string) => readFileSync(join(BENCH, "pages", page), "utf8");
const RUNNERS: ReadonlySet<string> = new Set(["main", "release"]);
/** Processes that benches start. */
const STARTED: ReadonlySet<string> = new Set(["bare-proxy", "stub-upstream"]);
/** Programs: what no other file of bench imports, but for those that run the others. */
const PROGRAMS = programs();

test("the index lists every page, by its question, and fits a screen", () => {
  const index = readFileSync(join(BENCH, "README.md"), "utf8");
  const listed = [...index.matchAll(/^\| \[(.+?)\]\(pages\/(.+?)\)/gm)].map(([, question, page]) => [page, question]);
  assert.deepEqual(
    Object.fromEntries(listed),
    Object.fromEntries(PAGES.map((page) => [page, /^# (.+\?)$/m.exec(read(page))?.[1]])),
  );
  assert.ok(index.split("\n").length <= INDEX_LINES_MAX);
});

test("a page has a question, its answer first, and at most a screen or two", () => {
  const wrong = PAGES.filter((page) => page !== "settled.md" && !/^# .+\?\n\n\*\*.+/.test(read(page)));
  assert.deepEqual(wrong, []);
  assert.deepEqual(
    PAGES.filter((page) => (read(page).match(/\S*[\p{L}\p{N}]\S*/gu) ?? []).length > PAGE_WORDS_MAX),
    [],
  );
});

test("every bench that is kept is in the catalogue, and in a block of its page", () => {
  assert.deepEqual(PROGRAMS, Object.keys(BENCHES).sort());
  const without = Object.entries(BENCHES).filter(
    ([name, { page }]) => !blocksOf(read(`${page}.md`)).some(({ words }) => words[0] === name),
  );
  assert.deepEqual(without, []);
});

test("every block's bench and options are there, and its figures name a commit", () => {
  const wrong = PAGES.flatMap((page) =>
    blocksOf(read(page)).flatMap((block) => {
      const [name = "", ...args] = block.words;
      const command = block.words.join(" ");
      if (commitOf(block) === undefined) return [`${page}: ${command}: no figures`];
      // Of gnomon's own commands the documents' test knows.
      if (name === "gnomon") return [];
      const sources = [join(BENCH, `${name}.ts`), ...globSync(join(BENCH, name, "**/*.ts"))];
      const text = Object.hasOwn(BENCHES, name) ? sources.map((file) => readFileSync(file, "utf8")).join("") : "";
      const options = args.filter((arg) => arg.startsWith("--")).map((arg) => arg.slice(2));
      if (text === "") return [`${page}: no bench ${name}`];
      return options

        .filter((option) => !new RegExp(`(?:"${option}"|\\b${option}): \\{`).test(text))
        .map((option) => `${page}: ${name} has no --${option}`);
    }),
  );
  assert.deepEqual(wrong, []);
});

test("release writes what a command printed into its block, with where it was measured, and leaves the rest", () => {
  const page =
    "# Is it?\n\n**Yes.**\n\n<!-- release: a --b 1 -->\nold\n<!-- /release -->\n\n<!-- release: c -->\n<!-- /release -->\n\nend\n";
  const printed = "head\n\n| x |\n|---|\n| \u001b[31m1\u001b[39m |\n\nfoot\n";
  const written = withFigures(page, "a --b 1", printed, ORIGIN);
  assert.equal(
    written,
    page.replace(
      "old\n",
      "Measured at `12345678`, 2026-01-02, 2 cores:\n\n```sh\nnpm run bench -- a --b 1\n```\n\n" +
        "```\nhead\n```\n\n| x |\n|---|\n| 1 |\n\n```\nfoot\n```\n",
    ),
  );
  assert.deepEqual(blocksOf(written).map(commitOf), ["12345678", undefined]);
  assert.equal(withFigures(written, "a --b 1", printed, ORIGIN), written);
});

test("of a block with a pattern, lines with a match are written, and heads of tables that have some", () => {
  const page = "<!-- release: a | grep good|^# -->\n<!-- /release -->\n";
  const printed = "# one\n\n| x |\n|---|\n| bad |\n\nnoise\n| y |\n|---:|\n| good |\n| bad |\n";
  const [block] = blocksOf(withFigures(page, "a | grep good|^#", printed, ORIGIN));
  assert.deepEqual(block?.words, ["a"]);
  assert.ok(block.text.includes("```\n# one\n```\n"), block.text);
  assert.doesNotMatch(block.text, /bad|noise|\| x \|/);
  assert.ok(block.text.endsWith("\n\n| y |\n|---:|\n| good |\n"), block.text);
});

test("release runs the benches of the pages' blocks, and names what it left as it was", (t) => {
  const pages = mkdtempSync(join(tmpdir(), "pages-"));
  t.after(() => rmSync(pages, { recursive: true, force: true }));
  const quick = read("structure.md").replace("release: structure -->", "release: structure --no-chat -->");
  writeFileSync(join(pages, "structure.md"), quick);
  const other = "# Else?\n\n<!-- release: structure --root $TEST_UNSET_FOLDER -->\nas it was\n<!-- /release -->\n";
  writeFileSync(join(pages, "else.md"), other);
  const argv = [join(BENCH, "main.ts"), "release", "--only", "structure", "--pages", pages, "--again"];
  const { status, stderr } = spawnSync(process.execPath, argv, { encoding: "utf8" });
  assert.equal(status, 1);
  assert.match(stderr, /left as it was: else\.md: .*set TEST_UNSET_FOLDER/);
  assert.equal(readFileSync(join(pages, "else.md"), "utf8"), other);
  const [block] = blocksOf(readFileSync(join(pages, "structure.md"), "utf8"));
  assert.match(commitOf(block!) ?? "", /^[0-9a-f]{8}(?:-dirty)?$/);
  assert.match(block!.text, /\| lines \/ files \/ median of src \| \d+ \/ \d+ \/ \d+ \|/);
});

function programs(): string[] {
  const files = globSync("**/*.ts", { cwd: BENCH });
  const links = /from "(\.[^"]+)"/g;
  const imported = new Set(
    files.flatMap((file) =>
      [...readFileSync(join(BENCH, file), "utf8").matchAll(links)].map(([, link]) => join(dirname(file), link!)),
    ),
  );
  return files
    .filter((file) => dirname(file) === "." && !imported.has(file))
    .map((file) => basename(file, ".ts"))
    .filter((name) => !RUNNERS.has(name) && !STARTED.has(name))
    .sort();
}
