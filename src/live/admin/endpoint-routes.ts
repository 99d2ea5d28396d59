import type { HttpBindings } from "@hono/node-server";
import type { Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { isFields } from "../base/fields.ts";
import { bodyOf, problem } from "./admin-api.ts";
import type { EndpointControl, EndpointAdmin } from "./endpoint-admin.ts";

type App = Hono<{ Bindings: HttpBindings }>;
type EndpointContext = Context<{ Bindings: HttpBindings }>;

const PATH = "/gnomon/admin/endpoints";
/** An endpoint's id, encoded as in any URL: of http://10.0.0.5:8000, http%3A%2F%2F10.0.0.5%3A8000. */
const ONE = `${PATH}/:id{[^/]{1,800}}`;
const BODY_BYTES_MAX = 4_096;
const GRACE_MILLIS_MAX = 86_400_000;
const NAMED_MAX = 16;

/** The admin API of endpoints, behind the gate of all of /gnomon/admin/. */
export function endpointRoutes(admin: EndpointAdmin): (app: App) => void {
  const limit = bodyLimit({
    maxSize: BODY_BYTES_MAX,
    onError: (c) => problem(c, 413, [`expected a body of at most ${BODY_BYTES_MAX} bytes`]),
  });
  return (app) => {
    app.get(PATH, (c) => c.json({ endpoints: admin.all() }));
    app.get(ONE, (c) => answered(c, admin, admin.of(c.req.param("id"))));
    app.post(`${ONE}/cordon`, limit, (c) => answered(c, admin, admin.cordon(c.req.param("id"))));
    app.post(`${ONE}/uncordon`, limit, (c) => answered(c, admin, admin.uncordon(c.req.param("id"))));
    app.post(`${ONE}/drain`, limit, async (c) => {
      const text = await c.req.text();
      const body = text === "" ? ({ ok: true, value: {} } as const) : bodyOf(text);
      if (!body.ok) return problem(c, 400, [body.message]);
      const grace = graceOf(body.value);
      if (typeof grace === "string") return problem(c, 400, [grace]);
      return answered(c, admin, admin.drain(c.req.param("id"), grace));
    });
  };
}

/** Milliseconds of a drain's grace, undefined where none is stated; what is wrong where something is. */
function graceOf(body: unknown): number | undefined | string {
  if (!isFields(body)) return "body: expected a mapping with graceMillis";
  const other = Object.keys(body).find((key) => key !== "graceMillis");
  if (other !== undefined) return `${other.slice(0, 64)}: expected graceMillis alone`;
  const grace = body["graceMillis"];
  if (grace === undefined) return undefined;
  const fits = typeof grace === "number" && Number.isInteger(grace) && grace >= 0 && grace <= GRACE_MILLIS_MAX;
  return fits ? grace : `graceMillis: expected an integer in [0, ${GRACE_MILLIS_MAX}]`;
}

function answered(c: EndpointContext, admin: EndpointAdmin, endpoint: EndpointControl | undefined): Response {
  if (endpoint !== undefined) return c.json(endpoint);
  const ids = admin.all().map(({ id }) => id);
  const more = ids.length > NAMED_MAX ? ", ..." : "";
  const known = ids.length === 0 ? "there is none" : `expected one of ${ids.slice(0, NAMED_MAX).join(", ")}${more}`;
  return problem(c, 404, [`endpoint: ${known}`]);
}
