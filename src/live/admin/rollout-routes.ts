import type { HttpBindings } from "@hono/node-server";
import type { Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { isFields } from "../base/fields.ts";
import { bodyOf, callerOf, orderAnswer, problem } from "./admin-api.ts";
import type { RolloutAdmin, RolloutReply, RolloutStepRequest } from "./rollout-admin.ts";

type App = Hono<{ Bindings: HttpBindings }>;
type RolloutContext = Context<{ Bindings: HttpBindings }>;

const PATH = "/gnomon/admin/rollout";
/** A rollout's name, encoded as in any URL. */
const ONE = `${PATH}/:id{[^/]{1,400}}`;
const STEPS = ["pause", "resume", "advance", "promote", "rollback"] as const satisfies RolloutStepRequest["step"][];

/**
 * The admin API of rollouts, behind the gate of all of /gnomon/admin/. Everything goes the way of all sources:
 * RolloutAdmin.
 */
export function rolloutRoutes(admin: RolloutAdmin): (app: App) => void {
  const limit = bodyLimit({
    maxSize: admin.bytesMax,
    onError: (c) => problem(c, 413, [`expected a body of at most ${admin.bytesMax} bytes (policy.documentBytesMax)`]),
  });
  return (app) => {
    app.get(PATH, (c) => c.json(admin.view()));
    app.post(PATH, limit, async (c) => {
      const dryRun = c.req.query("dry-run") ?? "false";
      if (dryRun !== "true" && dryRun !== "false") return problem(c, 400, ["dry-run: expected true or false"]);
      const body = bodyOf(await c.req.text());
      if (!body.ok) return problem(c, 400, [body.message]);
      return answered(c, await admin.start(body.value, { by: callerOf(c), dryRun: dryRun === "true" }));
    });
    app.get(ONE, (c) => {
      const found = admin.view().rollouts.find(({ name }) => name === c.req.param("id"));
      return found === undefined ? problem(c, 404, [notThere(admin)]) : c.json(found);
    });
    for (const step of STEPS) app.post(`${ONE}/${step}`, limit, (c) => stepped(c, admin, c.req.param("id"), step));
    app.delete(ONE, async (c) => {
      const rollout = c.req.param("id");
      return isThere(admin, rollout) ? answered(c, await admin.remove(rollout)) : problem(c, 404, [notThere(admin)]);
    });
  };
}

async function stepped(
  c: RolloutContext,
  admin: RolloutAdmin,
  rollout: string,
  step: RolloutStepRequest["step"],
): Promise<Response> {
  if (!isThere(admin, rollout)) return problem(c, 404, [notThere(admin)]);
  const text = await c.req.text();
  const body = text === "" ? ({ ok: true, value: {} } as const) : bodyOf(text);
  if (!body.ok) return problem(c, 400, [body.message]);
  const words = wordsOf(body.value);
  if (typeof words === "string") return problem(c, 400, [words]);
  return answered(c, await admin.step({ rollout, step, by: callerOf(c), ...words }));
}

const TEXT_CHARS_MAX = 256;

/** What a step is asked for with; what is wrong where something is. */
function wordsOf(body: unknown): Pick<RolloutStepRequest, "arm" | "reason" | "evenSo"> | string {
  if (!isFields(body)) return "body: expected a mapping with arm, reason and evenSo";
  const words: { arm?: string; reason?: string; evenSo?: boolean } = {};
  for (const key of Object.keys(body)) {
    const value = body[key];
    if (key === "evenSo") {
      if (typeof value !== "boolean") return `evenSo: expected true or false, got ${JSON.stringify(value)}`;
      words.evenSo = value;
      continue;
    }
    if (key !== "arm" && key !== "reason")
      return `${key.slice(0, TEXT_CHARS_MAX)}: expected one of arm, reason, evenSo`;
    if (typeof value !== "string" || value.length > TEXT_CHARS_MAX) {
      return `${key}: expected a text of at most ${TEXT_CHARS_MAX} characters`;
    }
    words[key] = value;
  }
  return words;
}

function isThere(admin: RolloutAdmin, rollout: string): boolean {
  return admin.view().rollouts.some(({ name }) => name === rollout);
}

function notThere(admin: RolloutAdmin): string {
  const names = admin.view().rollouts.map(({ name }) => name);
  return names.length === 0 ? "rollout: there is none" : `rollout: expected one of ${names.join(", ")}`;
}

function answered(c: RolloutContext, outcome: RolloutReply): Response {
  if (outcome.outcome === "refused") return problem(c, 400, outcome.problems);
  return orderAnswer(c, outcome, outcome.outcome === "applied" ? outcome.unkept : []);
}
