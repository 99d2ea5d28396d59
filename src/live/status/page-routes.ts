import type { HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import { pageFiles } from "./page-files.ts";
import { STATUS_PAGE, STATUS_PAGE_POLICY } from "./status-page.ts";

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
  app.get(`${FILES}*`, (c, next) => {
    const text = pageFiles().get(c.req.path.slice(FILES.length));
    if (text === undefined) return next();
    c.header("content-type", "text/javascript; charset=utf-8");
    c.header("x-content-type-options", "nosniff");
    c.header("cache-control", "no-cache");
    return Promise.resolve(c.body(text));
  });
}
