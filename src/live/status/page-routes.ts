import type { HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import { pageFiles, PAGE_LIBRARY, PAGE_MAIN } from "./page-files.ts";
import { createHash } from "node:crypto";
import { PAGE_STYLE } from "#page/part/page-style.ts";
import { STATUS_STYLE } from "#page/status/status-style.ts";

const FILES = "/gnomon/page/";

/** Mounts the status page and its scripts. They hold no data, so they are open: who sees what is asked for decides that. */
export function pageRoutes(app: Hono<{ Bindings: HttpBindings }>): void {
  app.get("/gnomon", (c) => c.redirect("/gnomon/", 308));
  app.get("/gnomon/", (c) => {
    c.header("content-security-policy", STATUS_PAGE_POLICY);
    c.header("x-content-type-options", "nosniff");
    c.header("cache-control", "no-cache");
    return c.html(STATUS_PAGE);
  });
  app.get(`${FILES}*`, async (c, next) => {
    const text = (await pageFiles()).get(c.req.path.slice(FILES.length));
    if (text === undefined) return next();
    c.header("content-type", "text/javascript; charset=utf-8");
    c.header("x-content-type-options", "nosniff");
    c.header("cache-control", "no-cache");
    return c.body(text);
  });
}

const STYLE = PAGE_STYLE + STATUS_STYLE;
/** Where the scripts' library is; the browser has no other way to find it by its name. */
const IMPORT_MAP = JSON.stringify({ imports: { preact: `./page/${PAGE_LIBRARY}` } });

/**
 * What the page may do: run the gateway's own scripts, have its one style, and ask this origin. A text never becomes an
 * element: the browser refuses whatever would parse it.
 */
const STATUS_PAGE_POLICY = [
  "default-src 'none'",
  `script-src 'self' ${hashOf(IMPORT_MAP)}`,
  `style-src ${hashOf(STYLE)}`,
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

/** The status page without what it shows: its scripts ask for that. It loads nothing from anywhere else. */
const STATUS_PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>gnomon</title>
<style>${STYLE}</style>
<script type="importmap">${IMPORT_MAP}</script>
<script type="module" src="page/${PAGE_MAIN}"></script>
</head>
<body>
<div id="page"><main><h1>gnomon</h1><noscript><p>This page needs JavaScript; /gnomon/overview has what it shows, as JSON.</p></noscript></main></div>
</body>
</html>
`;

function hashOf(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}
