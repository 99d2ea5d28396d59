import type { HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import type { Readiness } from "./readiness.ts";

/**
 * Mounts the pages that a vLLM server has beside inference, for clients and load balancers that ask for them: /health and
 * /ping answer 200 without a body where requests are served, else 503; /version is the gateway's own.
 */
export function enginePages(readiness: Readiness, version: string): (app: Hono<{ Bindings: HttpBindings }>) => void {
  return (app) => {
    app.on(["GET", "POST"], ["/health", "/ping"], (c, next) => {
      if (c.req.method === "POST" && c.req.path === "/health") return next();
      const waitsFor = readiness.waitsFor();
      return Promise.resolve(waitsFor.length === 0 ? c.body(null, 200) : c.json({ waitsFor }, 503));
    });
    app.get("/version", (c) => c.json({ version, server: "gnomon" }));
  };
}
