import { registerHooks } from "node:module";

const SOURCES = new URL("../src/", import.meta.url).href;
const NO_LOCALES = new URL("no-locales.js", import.meta.url).href;
/** Packages of many files, which name one another by their whole relative paths. */
const OF_MANY_FILES = /\/node_modules\/(?:zod|yaml)\//;
const LEFT_OUT = new URL("left-out.cjs", import.meta.url).href;
const UNDICI = /\/node_modules\/undici\/index\.js$/;
/** What it has for others: fetch, web sockets, caches, mocks. Of these, gnomon has what comes with Node, or nothing. */
const UNDICI_UNUSED = /^\.\/lib\/(?:web|cache|mock|interceptor)\//;
const PROM_CLIENT = /\/node_modules\/prom-client\/lib\//;
/** For spans beside its numbers, which gnomon does not turn on. */
const PROM_CLIENT_UNUSED = "@opentelemetry/api";
const HASH = 35;
const DOT = 46;

/**
 * Where a module is, from its name alone: `#core/x.ts` is src/core/x.ts, as package.json has it, and a relative name is
 * the file of that name. Undefined for everything else, which Node looks for: package scopes, links, files and folders of
 * like names, 0.1 ms for each of a command's 600 modules. The languages of zod's messages (62 modules) are left out, since
 * gnomon writes its own. A start of `simulate` takes 0.84 of the CPU. So is what undici and prom-client load for others
 * (115 modules of a gateway's 1,140).
 *
 * @param {string} specifier
 * @param {string | undefined} parentUrl
 * @returns {import("node:module").ResolveFnOutput | undefined}
 */
export function knownModule(specifier, parentUrl) {
  if (parentUrl === undefined) return undefined;
  if (isLeftOut(specifier, parentUrl)) return known(LEFT_OUT);
  const first = specifier.charCodeAt(0);
  if (first !== HASH && first !== DOT) return undefined;
  if (parentUrl.startsWith(SOURCES))
    return known(first === HASH ? SOURCES + specifier.slice(1) : new URL(specifier, parentUrl).href);
  if (first !== DOT || !specifier.endsWith(".js") || !OF_MANY_FILES.test(parentUrl)) return undefined;
  if (specifier === "../locales/index.js") return known(NO_LOCALES);
  return known(new URL(specifier, parentUrl).href);
}

/**
 * @param {string} specifier
 * @param {string} parentUrl
 */
function isLeftOut(specifier, parentUrl) {
  if (specifier === PROM_CLIENT_UNUSED) return PROM_CLIENT.test(parentUrl);
  return UNDICI_UNUSED.test(specifier) && UNDICI.test(parentUrl);
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
