import type { HttpBindings } from "@hono/node-server";
import type { Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";

import { isFields } from "../base/fields.ts";
import { bodyOf, callerOf, orderAnswer, problem } from "./admin-api.ts";
import type { AdminCaller, AdminVerdict } from "./admin-access.ts";
import type { PolicyAdmin, PolicyOutcome, PolicyRequest } from "./policy-admin.ts";

type App = Hono<{ Bindings: HttpBindings }>;
type PolicyContext = Context<{ Bindings: HttpBindings }>;

export interface PolicyRoutesOptions {
  readonly admin: PolicyAdmin;
  /** Forbidden: there is no token, and nobody is let in, from loopback neither. */
  readonly access: (caller: AdminCaller) => AdminVerdict;
}

const PATH = "/gnomon/admin/policy";

/** The admin API of policies. Whatever it is sent goes the way of all sources: PolicyAdmin. */
export function policyRoutes({ admin, access }: PolicyRoutesOptions): (app: App) => void {
  const { bytesMax } = admin;
  return (app) => {
    app.use("/gnomon/admin/*", async (c: PolicyContext, next) => {
      const { headers, socket } = c.env.incoming;
      const verdict = access({ headers, remoteAddress: socket.remoteAddress });
      if (verdict === "allowed") return next();
      if (verdict === "forbidden")
        return problem(c, 403, [
          "the admin API is closed; start the gateway with GNOMON_ADMIN_TOKEN, admin.tokenEnv or admin.tokenFile",
        ]);
      c.header("www-authenticate", "Bearer");
      return problem(c, 401, ["send the admin token as a bearer token"]);
    });
    const limit = bodyLimit({
      maxSize: bytesMax,
      onError: (c) => problem(c, 413, [`expected a body of at most ${bytesMax} bytes (policy.documentBytesMax)`]),
    });
    app.get(PATH, (c) => {
      const version = numberOf(c.req.query("version"));
      const view = version === "wrong" ? undefined : admin.view(version);
      return view === undefined ? problem(c, 404, [`version: ${notRemembered(admin)}`]) : c.json(view);
    });
    app.get(`${PATH}/history`, (c) => c.json(admin.history()));
    app.put(PATH, limit, (c) => changed(c, admin, (body, request) => admin.change(body, "replace", request)));
    for (const merge of ["PATCH", "POST"])
      app.on(merge, PATH, limit, (c) => changed(c, admin, (body, request) => admin.change(body, "merge", request)));
    app.post(`${PATH}/rollback`, limit, (c) =>
      changed(c, admin, (body, request) => admin.rollback(isFields(body) ? body["version"] : undefined, request)),
    );
  };
}

async function changed(
  c: PolicyContext,
  admin: PolicyAdmin,
  change: (body: unknown, request: PolicyRequest) => PolicyOutcome,
): Promise<Response> {
  const request = requestOf(c);
  if (Array.isArray(request)) return problem(c, 400, request);
  const body = bodyOf(await c.req.text());
  if (!body.ok) return problem(c, 400, [body.message]);
  const { version } = admin.view()!;
  const outcome = change(body.value, request);
  if (outcome.outcome === "applied") return orderAnswer(c, outcome, await admin.unkept());
  if (outcome.outcome !== "refused") return c.json(outcome);
  const isConflict = request.ifVersion !== undefined && request.ifVersion !== version;
  return problem(c, isConflict ? 409 : 400, outcome.problems, version);
}

function requestOf(c: PolicyContext): PolicyRequest | string[] {
  const ifVersion = numberOf(c.req.query("if-version"));
  const [dryRun, force] = [c.req.query("dry-run") ?? "false", c.req.query("force") ?? "false"];
  const problems = [
    ...(ifVersion === "wrong" ? ["if-version: expected the number of a version"] : []),
    ...(dryRun === "true" || dryRun === "false" ? [] : ["dry-run: expected true or false"]),
    ...(force === "true" || force === "false" ? [] : ["force: expected true or false"]),
  ];
  if (problems.length > 0 || ifVersion === "wrong") return problems;
  return { by: callerOf(c), dryRun: dryRun === "true", force: force === "true", ifVersion };
}

function numberOf(text: string | undefined): number | undefined | "wrong" {
  if (text === undefined) return undefined;
  return /^\d{1,15}$/.test(text) ? Number(text) : "wrong";
}

function notRemembered(admin: PolicyAdmin): string {
  const { versions } = admin.history();
  return `expected one of the remembered versions ${versions.at(-1)?.version} to ${versions[0]?.version}`;
}
