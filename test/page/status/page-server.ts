import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { getRequestListener, type HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import { pageRoutes } from "#live/status/page-routes.ts";
import type { DecisionDetail, Overview } from "#page/status/overview.ts";
import { detailCase } from "./overview-case.ts";

/** The page's own files, and what it asks for as a test has it. */
export interface PageServer {
  readonly address: string;
  /** Undefined lets it answer 503. */
  overview: Overview | undefined;
  detail: DecisionDetail | undefined;
  /** Wanted of whoever asks. */
  token: string | undefined;
  /** Targets that were asked for. */
  readonly asked: string[];
  stop(): Promise<void>;
}

export async function pageServer(t: Pick<TestContext, "after">, overview: Overview): Promise<PageServer> {
  const app = new Hono<{ Bindings: HttpBindings }>();
  const asked: string[] = [];
  pageRoutes(app);
  app.use("*", async (c, next) => {
    asked.push(c.req.path + new URL(c.req.url).search);
    if (made.token !== undefined && c.req.header("authorization") !== `Bearer ${made.token}`) return c.json({}, 401);
    return next();
  });
  app.get("/gnomon/overview", (c) => {
    if (made.overview === undefined) return c.json({ error: { message: "out of order" } }, 503);
    const after = Number(c.req.query("decisions"));
    const { decisions } = made.overview;
    return c.json({ ...made.overview, decisions: decisions.filter(({ sequence }) => sequence > after) });
  });
  app.get("/gnomon/decisions/:id", (c) => (made.detail === undefined ? c.json({}, 404) : c.json(made.detail)));
  const listener = getRequestListener(app.fetch);
  const server = createServer((incoming, outgoing) => void listener(incoming, outgoing));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  t.after(stop);
  const { port } = server.address() as AddressInfo;
  const address = `http://127.0.0.1:${port}/gnomon/`;
  const made: PageServer = { address, overview, detail: detailCase(104), token: undefined, asked, stop };
  return made;
}
