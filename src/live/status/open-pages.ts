import type { HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import { MetricsPage } from "../metrics/metrics-page.ts";
import type { GatewayMetrics } from "../metrics/metrics.ts";
import type { Readiness } from "./readiness.ts";

export interface OpenPagesOptions {
  readonly metrics: GatewayMetrics;
  readonly readiness: Readiness;
  readonly version: string;
}

/** Mounts what is open to everybody, on both ports: for scrapers, probes and load balancers. */
export function openPages({
  metrics,
  readiness,
  version,
}: OpenPagesOptions): (app: Hono<{ Bindings: HttpBindings }>) => void {
  // One for both ports: it is made once a second at most.
  const page = new MetricsPage({ render: () => metrics.render(), now: () => performance.now() });
  return (app) => {
    app.get("/metrics", async (c) => {
      c.header("content-type", metrics.contentType);
      return c.body(await page.text());
    });
    app.get("/healthz", (c) => c.json({ status: "alive" }));
    app.get("/readyz", (c) => {
      const waitsFor = readiness.waitsFor();
      return c.json({ ready: waitsFor.length === 0, waitsFor }, waitsFor.length === 0 ? 200 : 503);
    });
    enginePages(readiness, version)(app);
  };
}

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
