import { globSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { type Node, parseSync } from "oxc-parser";

/** One file of the source, with what it imports of it. */
export interface SourceFile {
  /** From the checkout's root, with slashes. */
  readonly path: string;
  readonly text: string;
  readonly lines: number;
  /** Interfaces, type aliases, classes and enums that it declares at its top. */
  readonly types: number;
  readonly imports: readonly Import[];
}

interface Import {
  readonly path: string;
  /** Whether nothing but types is imported, so that it is gone at run time. */
  readonly isType: boolean;
}

const NAMED_TYPES: ReadonlySet<string> = new Set([
  "TSInterfaceDeclaration",
  "TSTypeAliasDeclaration",
  "TSEnumDeclaration",
  "ClassDeclaration",
]);

/** All of src. */
export function sourceFiles(root: string): SourceFile[] {
  const paths = globSync("src/**/*.{ts,tsx}", { cwd: root }).sort();
  const known = new Set(paths);
  return paths.map((path) => sourceFile(path, readFileSync(join(root, path), "utf8"), known));
}

function sourceFile(path: string, text: string, known: ReadonlySet<string>): SourceFile {
  const { program, module: linked } = parseSync(path, text);
  const imports: Import[] = [];
  const add = (link: string, isType: boolean) => {
    const target = link.startsWith("#")
      ? `src/${link.slice(1)}`
      : posix.normalize(posix.join(posix.dirname(path), link));
    if (known.has(target)) imports.push({ path: target, isType });
  };
  for (const { moduleRequest, entries } of linked.staticImports) {
    add(moduleRequest.value, entries.length > 0 && entries.every((entry) => entry.isType));
  }
  for (const { entries } of linked.staticExports) {
    for (const { moduleRequest, isType } of entries) if (moduleRequest !== null) add(moduleRequest.value, isType);
  }
  for (const { moduleRequest } of linked.dynamicImports) {
    add(text.slice(moduleRequest.start, moduleRequest.end).replaceAll(/^["'`]|["'`]$/g, ""), false);
  }
  const types = program.body.filter((statement) => NAMED_TYPES.has(declared(statement).type)).length;
  return { path, text, lines: text.split("\n").length - 1, types, imports };
}

function declared(statement: Node): Node {
  const inner = "declaration" in statement ? statement.declaration : undefined;
  return inner !== null && typeof inner === "object" && "type" in inner ? inner : statement;
}

/** Words of all Markdown documents, and of those in bench. */
export function documentWords(root: string): readonly [number, number] {
  const exclude = ["node_modules/**", "**/node_modules/**", "traces/**"];
  const counted = globSync("**/*.md", { cwd: root, exclude }).map((path) => ({
    inBench: path.startsWith("bench/"),
    words: readFileSync(join(root, path), "utf8").split(/\s+/).filter(Boolean).length,
  }));
  const sum = (of: readonly { readonly words: number }[]) => of.reduce((words, one) => words + one.words, 0);
  return [sum(counted), sum(counted.filter(({ inBench }) => inBench))];
}
