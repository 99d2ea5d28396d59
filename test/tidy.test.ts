import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { test } from "node:test";
import { CATALOG } from "#core/profile/catalog.ts";
import type { Plugin } from "#core/plugin/plugin.ts";

const ROOT = resolve(import.meta.dirname, "..");
const SOURCES = globSync("src/**/*.ts", { cwd: ROOT }).sort();
const TESTS = globSync("{test,bench}/**/*.ts", { cwd: ROOT, exclude: ["test/golden/**"] }).sort();
const textOf = (file: string) => readFileSync(join(ROOT, file), "utf8");

/** The parts of core that engine and emulator may use: no decision, only arithmetic, a heap, tables by name and by request id. */
const ARITHMETIC = ["core/base"];

/** What each folder of src may import beside itself: folders, or single files. */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  core: [],
  engine: ARITHMETIC,
  trace: ["core"],
  sim: ["core", "engine", "trace"],
  page: [],
  shadow: ["core", "engine", "trace", "sim", "page"],
  live: ["core", "trace", "page"],
  picker: ["core", "live"],
  emulator: ["engine", ...ARITHMETIC],
  drive: ["core", "trace"],
  config: ["core", "engine", "trace/yaml-text.ts"],
  serve: ["core", "engine", "trace", "shadow", "live", "picker", "emulator", "config"],
  cli: ["core", "engine", "trace", "sim", "shadow", "live", "emulator", "drive", "config", "serve"],
};

/** Folders without clock, entropy or input and output. */
const PURE = ["core", "engine", "sim"];

/** What no text of this project says, and why. */
const BANNED: readonly { readonly pattern: RegExp; readonly why: string }[] = [
  { pattern: /\b(?:TODO|FIXME|XXX|HACK)\b/, why: "do it, or leave it out" },
  { pattern: /@ts-(?:ignore|nocheck|expect-error)/, why: "types are to be right" },
  { pattern: /\b(?:eslint|oxlint)-disable/, why: "mend the code or the rule" },
  { pattern: /\bas any\b|: any\b|<any>/, why: "name the type" },
  { pattern: /\bfor now\b|\bsimplified\b.*\blater\b/i, why: "it is either right or missing" },
  { pattern: /\bissue #?\d+|\(#\d+\)/i, why: "history belongs to the history" },
  { pattern: /\/work\/|\/root\/|\/home\//, why: "no path of one machine" },
  {
    pattern: /\brequirements? 00\d|\b00[0-4] §|\bINV-\d|\bfacts? \d+\b/,
    why: "a reader has no such document: name the public source, or the invariant of src/core/README.md",
  },
];

/** Words of our own that a reader would have to learn, and those that make programs talk. */
const PRIVATE_WORDS =
  /\b(?:[Tt]old|[Uu]ntold|[Tt]ells?|[Hh]ears?|[Hh]eard|[Hh]earing|[Ss]ays|[Ss]aid|Journal|ChatContext|EngineEars?)\b|\b[Ww]ords about\b|\bby why\b|(?<![A-Za-z])lanes?(?![a-z])|Lanes?(?![a-z])|(?<![A-Z])LANES?(?![A-Z])/;
/** The text in which a test or a group of them is described. */
const TITLE = /\b(?:test|it|describe)(?:\.\w+)?\(\s*(["'`])((?:\\.|(?!\1).)*)\1/gs;
/** Keys of the trace format, as its first version named block hashes, and a vocabulary. */
const PRIVATE_WORDS_ALLOWED = /"(?:lanes|answerLanes)"|"bet two may did add/;

test("folders import only in the allowed directions", () => {
  const wrong = SOURCES.flatMap((file) =>
    importsOf(file)
      .filter((target) => !isAllowed(file, target))
      .map((target) => `${file} imports ${target}`),
  );
  assert.deepEqual(wrong, []);
});

test("inside each folder of src, its folders import one another in one direction, by types too", () => {
  assert.deepEqual(knottedRooms(), []);
});

test("imports across folders use the folder's alias", () => {
  const wrong = SOURCES.filter((file) => file.split("/").length > 2).flatMap((file) =>
    specifiersOf(file)
      .filter((specifier) => specifier.startsWith(".") && folderOf(resolved(file, specifier)) !== folderOf(file))
      .map((specifier) => `${file} imports ${specifier}`),
  );
  assert.deepEqual(wrong, []);
});

test("every import names a file that is there", () => {
  const missing = [...SOURCES, ...TESTS].flatMap((file) =>
    importsOf(file)
      .filter((target) => !existsSync(join(ROOT, target)))
      .map((target) => `${file} imports ${target}`),
  );
  assert.deepEqual(missing, []);
});

test("core, engine and sim have no clock, no entropy, no input or output", () => {
  const impure =
    /\b(?:Date|Temporal|performance|process|setTimeout|setInterval|setImmediate|queueMicrotask|crypto|console)\b|Math\.random/;
  const wrong = inFolders(PURE).flatMap((file) => {
    const lines = offendingLines(withoutComments(textOf(file)), impure);
    const builtins = specifiersOf(file).filter((one) => one.startsWith("node:"));
    return [...lines, ...builtins].map((what) => `${file}: ${what}`);
  });
  assert.deepEqual(wrong, []);
});

test("a trace's content is made and read without files: only its segments, its reader and the importers touch them", () => {
  const wrong = inFolders(["trace"])
    .filter((file) => !/^src\/trace\/(?:segment-|reader\.ts|import\/|export\/)/.test(file))
    .filter((file) => specifiersOf(file).some((specifier) => specifier.startsWith("node:")));
  assert.deepEqual(wrong, []);
});

test("core and engine never wait", () => {
  const wrong = inFolders(["core", "engine"]).flatMap((file) =>
    offendingLines(withoutComments(textOf(file)), /\b(?:async|await|Promise)\b/).map((line) => `${file}: ${line}`),
  );
  assert.deepEqual(wrong, []);
});

test("nothing that is banned is written", () => {
  const wrong = [...SOURCES, ...TESTS]
    .filter((file) => file !== "test/tidy.test.ts")
    .flatMap((file) =>
      BANNED.flatMap(({ pattern, why }) =>
        offendingLines(textOf(file), pattern).map((line) => `${file}: ${line} (${why})`),
      ),
    );
  assert.deepEqual(wrong, []);
});

test("the field's terms and plain English: no private word in the source, the benches, the configuration or documents", () => {
  const texts = globSync(["*.md", "{src,bench,docs}/**/*.md", "bench/**/*.ts", "config/**/*.yaml"], { cwd: ROOT });
  const files = [...SOURCES, ...texts];
  const wrong = files.flatMap((file) => {
    const lines = textOf(file).split("\n");
    return lines.flatMap((line, i) =>
      PRIVATE_WORDS.test(line) && !PRIVATE_WORDS_ALLOWED.test(line)
        ? [`${file}:${i + 1}: ${line.trim().slice(0, 90)}`]
        : [],
    );
  });
  assert.deepEqual(wrong, []);
});

test("no private word in the title of a test", () => {
  const wrong = TESTS.flatMap((file) =>
    [...textOf(file).matchAll(TITLE)]
      .filter(([, , title]) => PRIVATE_WORDS.test(title!))
      .map(([, , title]) => `${file}: ${title}`),
  );
  assert.deepEqual(wrong, []);
});

test("file names are words with hyphens, and no folder is a drawer for everything", () => {
  const wrong = [...SOURCES, ...TESTS].filter(
    (file) =>
      !file.split("/").every((part) => /^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.[a-z]+)*$/.test(part)) ||
      /\b(?:utils?|helpers?|common|misc)\b/.test(file),
  );
  assert.deepEqual(wrong, []);
});

test("one name is one thing: no two files of src export a class, type or function of the same name", () => {
  const known = new Map<string, string[]>();
  for (const file of SOURCES) {
    const exported = /^export (?:abstract |async )*(?:class|interface|type|function\*?) (\w+)/gm;
    // Overloads are one function.
    for (const name of new Set([...textOf(file).matchAll(exported)].map(([, one]) => one!))) {
      known.getOrInsert(name, []).push(file);
    }
  }
  const twice = [...known].filter(([, files]) => files.length > 1);
  assert.deepEqual(twice, []);
});

test("every name in the catalog states what it does, what it reads and where it is from", () => {
  const silent = Object.entries(CATALOG).flatMap(([kind, plugins]) =>
    Object.entries<Pick<Plugin<unknown>, "summary" | "source" | "reads" | "parameters">>(plugins).flatMap(
      ([name, plugin]) => {
        const parameters = Object.entries(plugin.parameters).filter(([, one]) => one.meaning === "");
        const bare = plugin.summary === "" || plugin.source === "" || plugin.reads.length === 0;
        return [...(bare ? [`${kind} ${name}`] : []), ...parameters.map(([key]) => `${kind} ${name} ${key}`)];
      },
    ),
  );
  assert.deepEqual(silent, []);
});

function inFolders(folders: readonly string[]): string[] {
  return SOURCES.filter((file) => folders.includes(folderOf(file)));
}

/** `src/core/profile/check.ts` is in core, `src/main.ts` in main. */
function folderOf(file: string): string {
  const [, folder = ""] = file.split("/");
  return folder.replace(/\.ts$/, "");
}

function isAllowed(file: string, target: string): boolean {
  const from = folderOf(file);
  if (from === "main" || folderOf(target) === from) return true;
  const inside = target.replace(/^src\//, "");
  return (ARROWS[from] ?? []).some((arrow) => inside === arrow || inside.startsWith(`${arrow}/`));
}

/** Files of this project that a file imports, for what it takes at run time or for types alone. */
function importsOf(file: string): string[] {
  return specifiersOf(file)
    .filter((specifier) => /^[.#]/.test(specifier))
    .map((specifier) => resolved(file, specifier));
}

/** Folders, and files that lie in none of them, that import themselves over others of the same folder of src. */
function knottedRooms(): string[] {
  const targets = new Map<string, Set<string>>();
  for (const file of SOURCES) {
    const known = targets.getOrInsert(roomOf(file), new Set());
    for (const to of importsOf(file)) {
      if (folderOf(to) === folderOf(file) && roomOf(to) !== roomOf(file)) known.add(roomOf(to));
    }
  }
  return [...targets.keys()].filter((from) => reachedFrom(from, targets).has(from)).sort();
}

/** `src/core/profile/check.ts` is in src/core/profile; `src/core/router.ts` is a room of its own. */
function roomOf(file: string): string {
  return file.split("/").length > 3 ? dirname(file) : file;
}

function reachedFrom(from: string, targets: ReadonlyMap<string, ReadonlySet<string>>): Set<string> {
  const seen = new Set<string>();
  const queue = [...(targets.get(from) ?? [])];
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    queue.push(...(targets.get(next) ?? []));
  }
  return seen;
}

function resolved(file: string, specifier: string): string {
  if (specifier.startsWith("#")) return `src/${specifier.slice(1)}`;
  return relative(ROOT, resolve(ROOT, dirname(file), specifier));
}

function specifiersOf(file: string): string[] {
  const pattern = /^(?:import|export)\b[^;"'=]*?\bfrom\s*"([^"]+)"|^import\s*"([^"]+)"|\bimport\(\s*"([^"]+)"/gm;
  return [...textOf(file).matchAll(pattern)].map(([, from, bare, dynamic]) => from ?? bare ?? dynamic ?? "");
}

/** Code without comments and strings, line by line as it was. */
function withoutComments(text: string): string {
  const pattern = /\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g;
  return text.replaceAll(pattern, (match) => match.replaceAll(/[^\n]/g, " "));
}

function offendingLines(text: string, pattern: RegExp): string[] {
  return text.split("\n").flatMap((line, i) => (pattern.test(line) ? [`${i + 1}: ${line.trim().slice(0, 80)}`] : []));
}
