import { registerHooks } from "node:module";

const SOURCES = new URL("../src/", import.meta.url).href;
const NO_LOCALES = new URL("no-locales.js", import.meta.url).href;
/** Packages of many files, which name one another by their whole relative paths. */
const OF_MANY_FILES = /\/node_modules\/(?:zod|yaml)\//;
const HASH = 35;
const DOT = 46;

/**
 * Where a module is, from its name alone: `#core/x.ts` is src/core/x.ts, as package.json has it, and a relative name is
 * the file of that name. Undefined for everything else, which Node looks for: package scopes, links, files and folders of
 * like names, 0.1 ms for each of a command's 600 modules. The languages of zod's messages (62 modules) are left out, since
 * gnomon writes its own. A start of `simulate` takes 0.84 of the CPU.
 *
 * @param {string} specifier
 * @param {string | undefined} parentUrl
 * @returns {import("node:module").ResolveFnOutput | undefined}
 */
export function knownModule(specifier, parentUrl) {
  if (parentUrl === undefined) return undefined;
  const first = specifier.charCodeAt(0);
  if (first !== HASH && first !== DOT) return undefined;
  if (parentUrl.startsWith(SOURCES))
    return known(first === HASH ? SOURCES + specifier.slice(1) : new URL(specifier, parentUrl).href);
  if (first !== DOT || !specifier.endsWith(".js") || !OF_MANY_FILES.test(parentUrl)) return undefined;
  if (specifier === "../locales/index.js") return known(NO_LOCALES);
  return known(new URL(specifier, parentUrl).href);
}

/** For this thread; the format of JavaScript is its package's. */
export function resolveKnownModules() {
  registerHooks({
    resolve: (specifier, context, next) => knownModule(specifier, context.parentURL) ?? next(specifier, context),
  });
}

/** @param {string} url */
function known(url) {
  return { url, format: url.endsWith(".ts") ? "module-typescript" : undefined, shortCircuit: true };
}
