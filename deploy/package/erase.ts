import { stripTypeScriptTypes } from "node:module";

/** Whatever names a module or a worker of ours. */
const MODULE_NAME = /(?<=(?:\bfrom|\bimport|\bimport\(|\bnew URL\()\s*")([#.][^"]*)\.ts(?=")/g;

/**
 * A module as plain JavaScript that names others by theirs. Types become spaces, so that lines and columns of an error
 * are those of the source.
 */
export function erase(source: string): string {
  return namedByJavaScript(stripTypeScriptTypes(source));
}

/** The same for a text that has no types, or keeps them: JavaScript, a declaration. */
export function namedByJavaScript(text: string): string {
  return text.replace(MODULE_NAME, "$1.js");
}
