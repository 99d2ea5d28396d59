import { globSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** Where the code of the page is, which the browser runs as it is written, without its types. */
const ROOT = resolve(import.meta.dirname, "../../page");
/** Sources end as this file does: in a package their types are gone already. */
const ENDING = extname(import.meta.filename);

/** Name of the module that the page starts with, below the folder of files. */
export const PAGE_MAIN = `status/main${ENDING}`;
/** Name under which the library that draws the page is served. */
export const PAGE_LIBRARY = "library/preact.js";

let files: ReadonlyMap<string, string> | undefined;

/** The scripts of the status page by name, such as "status/main.ts"; read once. It takes some 60 ms then. */
export function pageFiles(): ReadonlyMap<string, string> {
  files ??= new Map([...ownFiles(), [PAGE_LIBRARY, libraryText()]]);
  return files;
}

function ownFiles(): [string, string][] {
  const names = globSync(`**/*${ENDING}`, { cwd: ROOT, exclude: (name) => name.endsWith(".d.ts") });
  return names.map((name) => {
    const text = readFileSync(join(ROOT, name), "utf8");
    return [name, ENDING === ".ts" ? withoutTypes(text) : text];
  });
}

/**
 * Types become spaces, so that lines and columns stay. Node announces that this function of its own may still change, once
 * a process: this program is read by the same code, so there is nothing in that for who runs it.
 */
function withoutTypes(text: string): string {
  const announce = Object.getOwnPropertyDescriptor(process, "emitWarning")!;
  process.emitWarning = () => {};
  try {
    return stripTypeScriptTypes(text);
  } finally {
    Object.defineProperty(process, "emitWarning", announce);
  }
}

/** Its last line names a file for debuggers that is not served. */
function libraryText(): string {
  const text = readFileSync(fileURLToPath(import.meta.resolve("preact")), "utf8");
  return text.replace(/\n?\/\/# sourceMappingURL=.*\s*$/, "\n");
}
