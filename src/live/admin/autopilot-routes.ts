import type { HttpBindings } from "@hono/node-server";
import type { Context, Hono } from "hono";
import { callerOf, problem } from "./admin-api.ts";
import type { AutopilotDesk, AutopilotOutcome } from "./autopilot-desk.ts";

type App = Hono<{ Bindings: HttpBindings }>;

const PATH = "/gnomon/admin/autopilot";
const ONE = `${PATH}/:id{[^/]{1,400}}`;

/** The admin API of proposals, behind the gate of all of /gnomon/admin/. */
export function autopilotRoutes(desk: AutopilotDesk): (app: App) => void {
  return (app) => {
    app.get(PATH, (c) => c.json(desk.view()));
    app.get(ONE, (c) => {
      const found = desk.view().proposals.find(({ name }) => name === c.req.param("id"));
      return found === undefined ? problem(c, 404, [notThere(desk)]) : c.json(found);
    });
    app.post(`${ONE}/accept`, async (c) =>
      isThere(desk, c.req.param("id"))
        ? answered(c, await desk.accept(c.req.param("id"), callerOf(c)))
        : problem(c, 404, [notThere(desk)]),
    );
    app.post(`${ONE}/decline`, (c) =>
      isThere(desk, c.req.param("id"))
        ? answered(c, desk.decline(c.req.param("id"), callerOf(c)))
        : problem(c, 404, [notThere(desk)]),
    );
  };
}

function isThere(desk: AutopilotDesk, proposal: string): boolean {
  return desk.view().proposals.some(({ name }) => name === proposal);
}

function notThere(desk: AutopilotDesk): string {
  const names = desk.view().proposals.map(({ name }) => name);
  return names.length === 0 ? "proposal: there is none" : `proposal: expected one of ${names.join(", ")}`;
}

function answered(c: Context<{ Bindings: HttpBindings }>, outcome: AutopilotOutcome): Response {
  return outcome.outcome === "refused" ? problem(c, 400, outcome.problems) : c.json(outcome);
}
