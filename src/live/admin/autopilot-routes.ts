import type { HttpBindings } from "@hono/node-server";
import type { Context, Hono } from "hono";
import { callerOf, problem } from "./admin-api.ts";
import type { AutopilotAdmin, AutopilotOutcome } from "./autopilot-admin.ts";

type App = Hono<{ Bindings: HttpBindings }>;

const PATH = "/gnomon/admin/autopilot";
const ONE = `${PATH}/:id{[^/]{1,400}}`;

/** The admin API of proposals, behind the gate of all of /gnomon/admin/. */
export function autopilotRoutes(admin: AutopilotAdmin): (app: App) => void {
  return (app) => {
    app.get(PATH, (c) => c.json(admin.view()));
    app.get(ONE, (c) => {
      const found = admin.view().proposals.find(({ name }) => name === c.req.param("id"));
      return found === undefined ? problem(c, 404, [notThere(admin)]) : c.json(found);
    });
    app.post(`${ONE}/accept`, async (c) =>
      isThere(admin, c.req.param("id"))
        ? answered(c, await admin.accept(c.req.param("id"), callerOf(c)))
        : problem(c, 404, [notThere(admin)]),
    );
    app.post(`${ONE}/decline`, (c) =>
      isThere(admin, c.req.param("id"))
        ? answered(c, admin.decline(c.req.param("id"), callerOf(c)))
        : problem(c, 404, [notThere(admin)]),
    );
  };
}

function isThere(admin: AutopilotAdmin, proposal: string): boolean {
  return admin.view().proposals.some(({ name }) => name === proposal);
}

function notThere(admin: AutopilotAdmin): string {
  const names = admin.view().proposals.map(({ name }) => name);
  return names.length === 0 ? "proposal: there is none" : `proposal: expected one of ${names.join(", ")}`;
}

function answered(c: Context<{ Bindings: HttpBindings }>, outcome: AutopilotOutcome): Response {
  return outcome.outcome === "refused" ? problem(c, 400, outcome.problems) : c.json(outcome);
}
