import type { HttpBindings } from "@hono/node-server";
import type { Context, Hono } from "hono";
import type { Router } from "#core/router.ts";
import { adminAccess } from "./admin-access.ts";
import { nowMicros } from "../clock.ts";
import type { DecisionRing } from "./decision-ring.ts";
import type { BlockSizeView } from "../discovery/block-size.ts";
import type { FleetKeeper } from "../discovery/fleet-keeper.ts";
import type { EndpointDirectory } from "../discovery/endpoint-directory.ts";
import type { PolicyDesk } from "../policy/policy-desk.ts";
import { policyRoutes } from "../policy/policy-routes.ts";
import type { GatewayMetrics } from "../metrics/metrics.ts";
import type { Readiness } from "./readiness.ts";
import type { ShadowStatus } from "./shadow-status.ts";
import { STATUS_PAGE, STATUS_PAGE_POLICY } from "./status-page.ts";
import { decisionView, endpointView } from "./status-view.ts";

export interface StatusOptions {
  readonly router: Router;
  readonly directory: EndpointDirectory;
  readonly keeper: Pick<FleetKeeper, "rows">;
  readonly decisions: DecisionRing;
  readonly metrics: GatewayMetrics;
  readonly readiness: Readiness;
  /** Tokens per block of the prompts' chains, and who has other ones. */
  readonly blockSizes: { view(): BlockSizeView };
  /** Left out where there is no shadow. */
  readonly shadow?: () => ShadowStatus;
  readonly policy: PolicyDesk;
  /** Bearer token of /gnomon/*; without one they answer on loopback only. */
  readonly adminToken: string | undefined;
}

type StatusContext = Context<{ Bindings: HttpBindings }>;

const DECISIONS_SHOWN = 20;

/**
 * Mounts the pages about the gateway itself. /metrics, /healthz and /readyz are open, for scrapers and probes.
 * /gnomon/endpoints, /gnomon/decisions and /gnomon/shadow are for administrators; the page at /gnomon/ holds no data and asks for the
 * token itself. All but those below /gnomon/admin/ are read-only, and those answer nobody where there is no token.
 */
export function statusRoutes(options: StatusOptions): (app: Hono<{ Bindings: HttpBindings }>) => void {
  const access = adminAccess(options.adminToken);
  return (app) => {
    app.get("/metrics", async (c) => {
      c.header("content-type", options.metrics.contentType);
      return c.body(await options.metrics.render());
    });
    app.get("/healthz", (c) => c.json({ status: "alive" }));
    app.get("/readyz", (c) => {
      const waitsFor = options.readiness.waitsFor();
      return c.json({ ready: waitsFor.length === 0, waitsFor }, waitsFor.length === 0 ? 200 : 503);
    });
    app.get("/gnomon", (c) => c.redirect("/gnomon/", 308));
    app.get("/gnomon/", (c) => {
      c.header("content-security-policy", STATUS_PAGE_POLICY);
      return c.html(STATUS_PAGE);
    });
    app.use("/gnomon/:page{.+}", async (c, next) => {
      c.header("cache-control", "no-store");
      const { headers, socket } = c.env.incoming;
      const verdict = access({ headers, remoteAddress: socket.remoteAddress });
      if (verdict === "unauthorized") return unauthorized(c);
      if (verdict === "forbidden") return forbidden(c);
      return next();
    });
    app.get("/gnomon/policy", (c) => c.json({ inForce: options.policy.view(), ...options.policy.history() }));
    policyRoutes({
      desk: options.policy,
      access,
      hasToken: options.adminToken !== undefined,
    })(app);
    app.get("/gnomon/endpoints", (c) => c.json({ prefix: options.blockSizes.view(), endpoints: endpoints(options) }));
    app.get("/gnomon/shadow", (c) => {
      if (options.shadow === undefined) return problem(c, 404, "no shadow runs here; set shadow.enabled");
      return c.json(options.shadow());
    });
    app.get("/gnomon/decisions", (c) => {
      const count = readCount(c.req.query("n"));
      if (count === undefined) return problem(c, 400, "n must be an integer from 1 to 100000");
      return c.json({ kept: options.decisions.size, decisions: options.decisions.last(count).map(decisionView) });
    });
  };
}

function endpoints({ router, directory, keeper }: StatusOptions) {
  const rows = new Map(router.endpointRows(nowMicros()).map((row) => [row.id, row]));
  const scrapes = new Map(keeper.rows().map((row) => [row.url, row]));
  return directory.all().map((entry) => endpointView(entry, rows.get(entry.id), scrapes.get(entry.url)));
}

function readCount(text: string | undefined): number | undefined {
  if (text === undefined) return DECISIONS_SHOWN;
  const count = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  return count >= 1 && count <= 100_000 ? count : undefined;
}

function unauthorized(c: StatusContext): Response {
  c.header("www-authenticate", "Bearer");
  return problem(c, 401, "send the admin token as a bearer token");
}

function forbidden(c: StatusContext): Response {
  return problem(c, 403, "without an admin token this page answers on loopback only; set admin.tokenEnv");
}

function problem(c: StatusContext, code: 400 | 401 | 403 | 404, message: string): Response {
  return c.json({ error: { message, type: "BadRequestError", param: null, code } }, code);
}
