/**
 * Finds modules by their names alone, as the command does (bin/known-modules.js), for tests and benches too: a process of
 * tests loads up to two thousand of them.
 */
import { registerHooks } from "node:module";
import { knownModule } from "../bin/known-modules.js";

const ROOT = new URL("../", import.meta.url).href;
const SOURCES = `${ROOT}src/`;
const OURS = new RegExp(`^${RegExp.escape(ROOT)}(?:test|bench)/`);

registerHooks({
  resolve: (specifier, context, next) => {
    const { parentURL } = context;
    // What # names is the same for all of this project.
    const asked = specifier.startsWith("#") && parentURL !== undefined && OURS.test(parentURL) ? SOURCES : parentURL;
    return knownModule(specifier, asked) ?? next(specifier, context);
  },
});
