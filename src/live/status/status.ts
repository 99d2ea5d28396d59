import type { HttpBindings } from "@hono/node-server";
import type { Context, Hono } from "hono";
import type { Router } from "#core/router.ts";
import { adminAccess, tokenAccess } from "../admin/admin-access.ts";
import { admissionView } from "./admission-view.ts";
import { nowMicros } from "../base/clock.ts";
import type { DecisionRing, KeptDecision, ShownDecisions } from "./shown-decisions.ts";
import type { BlockSizeView } from "../endpoints/block-size.ts";
import type { FleetKeeper } from "../keeper/fleet-keeper.ts";
import type { EndpointDirectory } from "../endpoints/endpoint-directory.ts";
import { EndpointAdmin } from "../admin/endpoint-admin.ts";
import { endpointRoutes } from "../admin/endpoint-routes.ts";
import type { SourceBoard } from "../endpoints/source-board.ts";
import type { KvEvents } from "../kv-events/kv-events.ts";
import type { PolicyAdmin } from "../admin/policy-admin.ts";
import type { AutopilotAdmin } from "../admin/autopilot-admin.ts";
import { autopilotRoutes } from "../admin/autopilot-routes.ts";
import type { RolloutAdmin } from "../admin/rollout-admin.ts";
import { rolloutRoutes } from "../admin/rollout-routes.ts";
import { policyRoutes } from "../admin/policy-routes.ts";
import type { GatewayMetrics } from "../metrics/metrics.ts";
import type { Readiness } from "./readiness.ts";
import type { ShareStatus } from "../share/share-status.ts";
import type { ShadowStatus } from "../metrics/shadow-status.ts";
import { decisionView, endpointView } from "./status-view.ts";
import type { ProcessWatch } from "./process-watch.ts";
import type { RecentTraffic } from "./recent-traffic.ts";
import { type OverviewQuery, overviewOf } from "./overview-view.ts";
import { pageRoutes } from "./page-routes.ts";

export interface StatusOptions {
  readonly router: Router;
  readonly directory: EndpointDirectory;
  readonly keeper: Pick<FleetKeeper, "rows" | "cordon" | "cordonOf">;
  /** Where endpoints come from. */
  readonly sources: Pick<SourceBoard, "rows">;
  readonly decisions: DecisionRing;
  readonly metrics: GatewayMetrics;
  readonly readiness: Readiness;
  /** Tokens per block of the prompts' chains, and who has other ones. */
  readonly blockSizes: { view(): BlockSizeView };
  /** Left out where nothing is shared with other gateways. */
  readonly share?: () => ShareStatus;
  /** Left out where there is no shadow. */
  readonly shadow?: () => ShadowStatus;
  readonly policy: PolicyAdmin;
  readonly traffic: RecentTraffic;
  readonly process: ProcessWatch;
  readonly shownDecisions: ShownDecisions;
  /** Left out where none can be. */
  readonly rollouts?: RolloutAdmin;
  /** Undefined where no better policy is searched. */
  readonly autopilot?: AutopilotAdmin | undefined;
  readonly version: string;
  /** Left out where no KV events are followed. */
  readonly kvEvents?: Pick<KvEvents, "rowOf">;
  /** Bearer token of /gnomon/*; without one, and without the other, they answer on loopback only. */
  readonly adminToken: string | undefined;
  /** Bearer token that opens all of them but those below /gnomon/admin/. */
  readonly statusToken?: string | undefined;
}

type StatusContext = Context<{ Bindings: HttpBindings }>;

const DECISIONS_SHOWN = 20;

/**
 * Mounts the pages about the gateway itself, on the port for operators alone. What is below /gnomon/ is for who sends the
 * status token or the admin token; the page at /gnomon/ holds no data and asks for one of them itself. All but those below
 * /gnomon/admin/ are read-only, and those want the admin token and answer nobody where there is none.
 */
export function statusRoutes(options: StatusOptions): (app: Hono<{ Bindings: HttpBindings }>) => void {
  const access = adminAccess(options.adminToken, options.statusToken);
  return (app) => {
    pageRoutes(app);
    app.use("/gnomon/:page{.+}", async (c, next) => {
      c.header("cache-control", "no-store");
      const { headers, socket } = c.env.incoming;
      const verdict = access({ headers, remoteAddress: socket.remoteAddress });
      if (verdict === "unauthorized") return unauthorized(c);
      if (verdict === "forbidden") return forbidden(c);
      return next();
    });
    app.get("/gnomon/policy", (c) => c.json({ inForce: options.policy.view(), ...options.policy.history() }));
    policyRoutes({ admin: options.policy, access: tokenAccess(options.adminToken) })(app);
    endpointRoutes(new EndpointAdmin(options))(app);
    const { rollouts } = options;
    if (rollouts !== undefined) {
      app.get("/gnomon/rollouts", (c) => c.json(rollouts.view()));
      rolloutRoutes(rollouts)(app);
    }
    const { autopilot } = options;
    if (autopilot !== undefined) {
      app.get("/gnomon/autopilot", (c) => c.json(autopilot.view()));
      autopilotRoutes(autopilot)(app);
    } else {
      for (const path of ["/gnomon/autopilot", "/gnomon/admin/autopilot", "/gnomon/admin/autopilot/*"])
        app.all(path, (c) => problem(c, 404, "no autopilot runs here; set autopilot.enabled"));
    }
    app.get("/gnomon/endpoints", (c) => c.json({ prefix: options.blockSizes.view(), endpoints: endpoints(options) }));
    app.get("/gnomon/sources", (c) => c.json({ sources: options.sources.rows() }));
    app.get("/gnomon/admission", (c) => c.json(admissionView(options.router, nowMicros())));
    app.get("/gnomon/shadow", (c) => {
      if (options.shadow === undefined) return problem(c, 404, "no shadow runs here; set shadow.enabled");
      const { why: _why, ...status } = options.shadow();
      return c.json(status);
    });
    app.get("/gnomon/why", (c) => {
      const why = options.shadow?.().why;
      if (why === undefined) return problem(c, 404, "nothing is explained here; set shadow.enabled and shadow.why");
      return c.json({ why });
    });
    app.get("/gnomon/overview", (c) => {
      const query = readQuery(c);
      return query === undefined
        ? problem(c, 400, "decisions and slot must be integers")
        : c.json(overviewOf(options, query));
    });
    app.get("/gnomon/decisions/:id{[0-9]{1,15}}", (c) => {
      const kept = decisionOf(options, Number(c.req.param("id")));
      return kept === undefined ? problem(c, 404, "this decision is not remembered") : c.json(decisionView(kept));
    });
    app.get("/gnomon/share", (c) => {
      if (options.share === undefined) return problem(c, 404, "nothing is shared here; set share.url");
      return c.json(options.share());
    });
    app.get("/gnomon/decisions", (c) => {
      const count = readCount(c.req.query("n"));
      if (count === undefined) return problem(c, 400, "n must be an integer from 1 to 100000");
      return c.json({
        kept: options.decisions.size,
        decisions: options.decisions.last(count).map((kept) => decisionView(kept)),
      });
    });
  };
}

function endpoints({ router, directory, keeper, kvEvents }: StatusOptions) {
  const rows = new Map(router.endpointRows(nowMicros()).map((row) => [row.id, row]));
  const scrapes = new Map(keeper.rows().map((row) => [row.url, row]));
  return directory
    .all()
    .map((entry) => endpointView(entry, rows.get(entry.id), scrapes.get(entry.url), kvEvents?.rowOf(entry.id)));
}

function decisionOf({ decisions, shownDecisions }: StatusOptions, sequence: number): KeptDecision | undefined {
  return shownDecisions.get(sequence) ?? decisions.find(sequence);
}

function readQuery(c: StatusContext): OverviewQuery | undefined {
  const [decisions, slot] = [c.req.query("decisions") ?? "-1", c.req.query("slot") ?? "-1"].map(Number);
  return Number.isSafeInteger(decisions) && Number.isSafeInteger(slot)
    ? { decisions: decisions!, slot: slot! }
    : undefined;
}

function readCount(text: string | undefined): number | undefined {
  if (text === undefined) return DECISIONS_SHOWN;
  const count = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  return count >= 1 && count <= 100_000 ? count : undefined;
}

function unauthorized(c: StatusContext): Response {
  c.header("www-authenticate", "Bearer");
  return problem(c, 401, "send the status token or the admin token as a bearer token");
}

function forbidden(c: StatusContext): Response {
  return problem(
    c,
    403,
    "without a token this page answers on loopback only; set admin.statusTokenEnv or admin.tokenEnv",
  );
}

function problem(c: StatusContext, code: 400 | 401 | 403 | 404, message: string): Response {
  return c.json({ error: { message, type: "BadRequestError", param: null, code } }, code);
}
