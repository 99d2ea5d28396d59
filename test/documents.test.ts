import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { test } from "node:test";

const ROOT = resolve(import.meta.dirname, "..");
const DOCUMENTS = globSync("**/*.md", { cwd: ROOT, exclude: ["node_modules/**", "traces/**"] }).sort();
const PICTURE_BYTES_MAX = 150_000;
const textOf = (file: string) => readFileSync(join(ROOT, file), "utf8");

test("every link of every document leads to a file, a heading or a line that is there", () => {
  const wrong = DOCUMENTS.flatMap((file) =>
    linksOf(file)
      .filter((link) => !/^[a-z]+:/i.test(link) && !leads(file, link))
      .map((link) => `${file}: ${link}`),
  );
  assert.deepEqual(wrong, []);
});

test("pictures are small enough to be cloned with the code", () => {
  const pictures = globSync("**/*.{png,jpg,gif,svg}", { cwd: ROOT, exclude: ["node_modules/**"] });
  assert.deepEqual(
    pictures.filter((file) => statSync(join(ROOT, file)).size > PICTURE_BYTES_MAX),
    [],
  );
});

test("every path of this project that a document names in code is there", () => {
  const folder = /^(?:\.\/)?(?:src|test|bench|config|deploy|k8s|bin)\/[\w./*{},-]+$/;
  const wrong = DOCUMENTS.flatMap((file) =>
    [...withoutBlocks(textOf(file)).matchAll(/`([^`\n]+)`/g)]
      .map(([, code]) => code!)
      .filter((code) => folder.test(code) && globSync(code.replace(/\/$/, ""), { cwd: ROOT }).length === 0)
      .map((code) => `${file}: ${code}`),
  );
  assert.deepEqual(wrong, []);
});

test("every command that a document shows is there, with its options", () => {
  const there = whatRuns();
  const wrong = DOCUMENTS.flatMap((file) =>
    commandsOf(file).flatMap((one) =>
      problemsOf(one, there).map((problem) => `${file}: ${one.program} ${one.words.join(" ")}: ${problem}`),
    ),
  );
  assert.deepEqual(wrong, []);
});

test("a command that is not there, and an option that it has not, would be found", () => {
  const there = whatRuns();
  const { commands, benches, scripts } = there;
  assert.ok(commands.get("serve")?.has("--record") && commands.has("trace export"));
  assert.ok(!commands.has("observe") && !commands.get("replay")?.has("--record"));
  assert.ok(benches.has("gateway") && !benches.has("children") && scripts.has("bench"));
  const problems = (text: string) => shown(text).flatMap((one) => problemsOf(one, there));
  assert.deepEqual(problems("npx gnomon observe traces\nnpm run bench -- children\nnpx node bench/none.ts"), [
    "no such command",
    "no bench children",
    "no such file",
  ]);
  assert.deepEqual(problems("npm start -- serve --record x --replay y\nnpm run nothing\ngnomon watch"), [
    "no --replay",
    "no such script",
    "no such command",
  ]);
  assert.deepEqual(
    shown("GNOMON_X=1 npx gnomon drive --url http://h \\\n  --api chat   # why\nx | npx gnomon explain --decision -"),
    [
      { program: "gnomon", words: ["drive", "--url", "http://h", "--api", "chat"] },
      { program: "gnomon", words: ["explain", "--decision", "-"] },
    ],
  );
});

interface Shown {
  readonly program: "gnomon" | "bench" | "node" | "script";
  readonly words: readonly string[];
}

function problemsOf({ program, words }: Shown, { commands, benches, scripts }: ReturnType<typeof whatRuns>): string[] {
  const [first = "", second = ""] = words;
  const settings = words.findIndex((word) => word.startsWith("-"));
  const named = settings < 0 ? words : words.slice(0, settings);
  switch (program) {
    case "node":
      return first.endsWith(".ts") && !existsSync(join(ROOT, first)) ? ["no such file"] : [];
    case "bench":
      return named.filter((name) => !benches.has(name)).map((name) => `no bench ${name}`);
    case "script":
      return scripts.has(first) ? [] : ["no such script"];
    case "gnomon": {
      const both = `${first} ${second}`;
      const name = commands.has(both) ? both : first.startsWith("-") || first === "" ? "serve" : first;
      const options = commands.get(name);
      if (options === undefined) return ["no such command"];
      const given = words.filter((word) => word.startsWith("--")).map((word) => word.replace(/=.*/, ""));
      return given
        .filter((option) => !options.has(option) && option !== "--help" && option !== "--help-all")
        .map((option) => `no ${option}`);
    }
  }
}

/** What a document's blocks and code spans tell a reader to type. */
function commandsOf(file: string): Shown[] {
  const text = textOf(file);
  // What a command printed may begin with a profile's name.
  const blocks = [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```/gm)].flatMap(([, language, block]) =>
    language === "text" ? [] : [block!],
  );
  const spans = [...withoutBlocks(text).matchAll(/`([^`\n]+)`/g)].map(([, span]) => span!);
  return [...blocks, ...spans].flatMap(shown);
}

function shown(text: string): Shown[] {
  return text
    .replaceAll(/\\\n\s*/g, "")
    .split(/\n|&&|\|/)
    .flatMap((line): Shown[] => {
      const command = line.replace(/(?:^|\s)#.*$/, "").trim();
      const [, run = "", rest = ""] = COMMAND.exec(command) ?? [];
      const words = rest.split(/\s+/).filter((word) => word !== "" && word !== "…" && !PLACEHOLDER.test(word));
      const program = PROGRAMS[run.replace(/ --$/, "")];
      return program === undefined ? [] : [{ program, words }];
    });
}

const COMMAND =
  /^(?:[A-Z_]+=\S+ )*((?:npx )?gnomon(?! is )|npm start --|npm run bench(?: --)?|npx node|npm run)(?: |$)(.*)$/;
/** NAME, FOLDER, bench/NAME.ts: for the reader to fill in. */
const PLACEHOLDER = /^(?:bench\/)?[A-Z]+(?:\.ts)?(?:\.\.\.)?$/;
const PROGRAMS: Readonly<Record<string, Shown["program"]>> = {
  "npx gnomon": "gnomon",
  gnomon: "gnomon",
  "npm start": "gnomon",
  "npm run bench": "bench",
  "npx node": "node",
  "npm run": "script",
};

let runs: ReturnType<typeof askedForAll> | undefined;

/** What there is: commands with their long options, benches, npm's scripts. The programs are asked once. */
function whatRuns() {
  return (runs ??= askedForAll());
}

function askedForAll() {
  const node = (...argv: readonly string[]): string =>
    execFileSync(process.execPath, argv, { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
  const help = node("bin/gnomon.js", "--help-all");
  const commands = new Map<string, Set<string>>();
  let options = new Set<string>();
  for (const line of help.split("\n")) {
    const usage = /^gnomon ([a-z-]+(?: [a-z-]+)?)(?: |$)/.exec(line);
    if (usage !== null) commands.set(usage[1]!, (options = new Set()));
    const option = /^ {2}(?:-\w, )?(--[\w-]+)/.exec(line);
    if (option !== null) options.add(option[1]!);
  }
  const benches = new Set(
    node("bench/main.ts", "--list")
      .split("\n")
      .map((line) => line.split(" ")[0]!),
  );
  const { scripts } = JSON.parse(textOf("package.json")) as { readonly scripts: Readonly<Record<string, string>> };
  return { commands, benches, scripts: new Set(Object.keys(scripts)) };
}

function linksOf(file: string): string[] {
  const text = withoutBlocks(textOf(file)).replaceAll(/`[^`\n]*`/g, "");
  return [...text.matchAll(/\]\(([^)\s]+)(?:\s+"[^"]*")?\)/g)].map(([, link]) => link!);
}

function leads(file: string, link: string): boolean {
  const [path = "", anchor] = link.split("#");
  const target = path === "" ? file : relative(ROOT, resolve(ROOT, dirname(file), decodeURIComponent(path)));
  if (!existsSync(join(ROOT, target))) return false;
  if (anchor === undefined) return true;
  const line = /^L(\d+)(?:-L\d+)?$/.exec(anchor);
  if (line !== null) return Number(line[1]) <= textOf(target).split("\n").length;
  return target.endsWith(".md") && headingsOf(target).includes(anchor);
}

/** Anchors of a document's headings, as hosts of repositories make them. */
function headingsOf(file: string): string[] {
  const seen = new Map<string, number>();
  return [...withoutBlocks(textOf(file)).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading]) => {
    const plain = heading!.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const slug = plain.replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(" ", "-");
    const times = seen.get(slug) ?? 0;
    seen.set(slug, times + 1);
    return times === 0 ? slug : `${slug}-${times}`;
  });
}

function withoutBlocks(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```/gm, "");
}
