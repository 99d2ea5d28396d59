import type { HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import { MetricsPage } from "../metrics/metrics-page.ts";
import type { GatewayMetrics } from "../metrics/metrics.ts";
import { enginePages } from "./engine-pages.ts";
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
