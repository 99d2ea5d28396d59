import assert from "node:assert/strict";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pushCors } from "#live/http/cors.ts";
import { ERRORS } from "#live/http/errors.ts";
import { Routes } from "#live/http/route.ts";
import { clients, routing } from "#config/routing-section.ts";
import { servePlan } from "../../src/cli/serve/serve-options.ts";
import { startedGateway } from "../serve/started-gateway.ts";

const LIVE = join(import.meta.dirname, "../../src/live");
const REFERENCE = join(import.meta.dirname, "../../docs/reference");
const DOCUMENT = ["routes.md", "headers.md", "metrics.md"]
  .map((name) => readFileSync(join(REFERENCE, name), "utf8"))
  .join("");

/** Rows of the table below a heading, cells without the marks of code. */
function table(heading: string): string[][] {
  const section = DOCUMENT.split(/^##? /m).find((text) => text.startsWith(`${heading}\n`));
  assert.ok(section !== undefined, heading);
  const rows = section.split("\n").filter((line) => line.startsWith("|"));
  return rows.slice(2).map((line) =>
    line
      .slice(2, -2)
      .split(" | ")
      .map((cell) => cell.replace(/^`(.*)`$/, "$1")),
  );
}

function assertSame(documented: readonly string[], real: readonly string[]): void {
  const [known, there] = [new Set(documented), new Set(real)];
  assert.equal(known.size, documented.length, "each once");
  const undocumented = [...there.difference(known)];
  const gone = [...known.difference(there)];
  assert.deepEqual({ undocumented, gone }, { undocumented: [], gone: [] });
}

/** What a pattern finds in the code of the gateway. */
function found(pattern: RegExp): string[] {
  return globSync("**/*.ts", { cwd: LIVE }).flatMap((file) =>
    [...readFileSync(join(LIVE, file), "utf8").matchAll(pattern)].map(([, name]) => name!),
  );
}

test("every route and every metric of a gateway is documented, and none that is not there", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-reference-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const plan = servePlan(
    {
      set: ["shadow.enabled=true", "autopilot.enabled=true"],
      record: directory,
      endpoint: ["http://127.0.0.1:9"],
    },
    {},
  );
  const stack = await startedGateway(plan);
  try {
    const { app, admin } = stack.gateway;
    const [forClients, forOperators] = [app, admin].map(({ routes }) =>
      routes
        .filter(({ method, path }) => method !== "ALL" && !(method === "POST" && path === "/*"))
        .map(({ method, path }) => `${method} ${path.replace(/:id\{(?:\[.*?\]\{.*?\}|\.\+)\}/, "{id}")}`)
        .filter((route) => !NOT_SERVED.has(route)),
    ) as [string[], string[]];
    const mounted = [
      ...forClients.map((route) => `${route} ${forOperators.includes(route) ? "both" : "clients"}`),
      ...forOperators.filter((route) => !forClients.includes(route)).map((route) => `${route} admin`),
    ];
    const inference = new Routes()
      .list()
      .split(", ")
      .map((path) => (path.startsWith("/") ? `POST ${path}` : path))
      .filter((route) => route !== "POST /v1/responses/{id}")
      .map((route) => `${route} clients`);
    assertSame(
      table("Routes").flatMap(([methods = "", path, port]) =>
        methods.split(", ").map((method) => `${method} ${path} ${port}`),
      ),
      [...mounted, ...inference],
    );

    const page = await (await app.request("/metrics")).text();
    const families = new Map([...page.matchAll(/^# HELP (\S+) (.*)$/gm)].map(([, name, help]) => [name!, help!]));
    const types = new Map([...page.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name!, type!]));
    const rows = table("Metrics").filter(([name = ""]) => families.has(name) || !OF_THE_SYSTEM.test(name));
    assertSame(
      rows.map(([name, type, , help]) => `${name} ${type} ${help}`),
      [...families].map(([name, help]) => `${name} ${types.get(name)} ${help}`),
    );
    for (const [name = "", , labels = ""] of rows) {
      const samples = page.matchAll(new RegExp(`^${name}(?:_bucket|_sum|_count)?\\{([^}]*)\\} `, "gm"));
      for (const [, text = ""] of samples) {
        const used = [...text.matchAll(/(\w+)="/g)].map(([, label]) => label!).filter((label) => label !== "le");
        assert.deepEqual(used.sort(), labels.split(", "), name);
      }
    }
  } finally {
    await stack.close();
  }
});

/** Patterns that hand on to what is not there: the two of a stored response are mounted as one, for either method. */
const NOT_SERVED: ReadonlySet<string> = new Set([
  "POST /v1/responses/{id}",
  "GET /v1/responses/{id}/cancel",
  "POST /health",
]);
/** Of the process; which there are depends on the system. */
const OF_THE_SYSTEM = /^gnomon_(?:process|nodejs)_/;

test("every request header that is read is documented, and none that is not", () => {
  const { tenantHeaders, sessionHeaders, sloClassHeader, timeoutHeaders } = clients.parse({});
  const { profileHeader } = routing.parse({});
  assertSame(
    table("Request headers that are read").map(([name]) => name!),
    [
      ...found(/(?:headers|given)\.get\("([a-z-]+)"\)/g),
      ...found(/req\.header\("([a-z-]+)"\)/g),
      ...found(/headers\["(x-api-key)"\]/g),
      ...found(/headers\.(authorization)\b/g),
      ...tenantHeaders,
      ...timeoutHeaders,
      ...sessionHeaders,
      sloClassHeader,
      profileHeader,
    ],
  );
});

test("every response header that is written is documented, and none that is not", () => {
  assertSame(
    table("Response headers that are written").map(([name]) => name!),
    [
      ...found(/"(x-gnomon-[a-z]+(?:-[a-z]+)*)"/g).filter((name) => !READ.has(name)),
      ...found(/\bc\.header\("([a-z-]+)"/g),
      ...found(/\bheaders\.push\("([a-z-]+)"/g),
      ...found(/\b(?:headers = |headers\.push\(|\.\.\.)[^;]*?"(content-length|connection|content-type|retry-after)",/g),
      ...found(/"(access-control-expose-headers)"/g),
      ...found(/\{ (allow): "/g),
    ].filter((name) => !TO_ENGINES.has(name)),
  );
});

test("a browser's page may read every header that is this gateway's own", () => {
  const own = table("Response headers that are written").map(([name]) => name!);
  const headers: string[] = [];
  pushCors(headers, { origin: "*" });
  const exposed = headers[headers.indexOf("access-control-expose-headers") + 1]!.split(", ");
  assertSame(
    exposed.filter((name) => name.startsWith("x-gnomon-")),
    own.filter((name) => name.startsWith("x-gnomon-")),
  );
});

test("retry-after is documented with the statuses that have it", () => {
  const [, meaning = ""] = table("Response headers that are written").find(([name]) => name === "retry-after") ?? [];
  const rows = Object.values(ERRORS).filter(({ retryAfter }) => retryAfter !== undefined);
  assertSame(meaning.match(/\d{3}/g) ?? [], [...new Set(rows.map(({ status }) => String(status)))]);
});

/** Ours of requests. */
const READ: ReadonlySet<string> = new Set([
  "x-gnomon-tenant",
  "x-gnomon-session",
  "x-gnomon-slo-class",
  "x-gnomon-slo-ttft-ms",
  "x-gnomon-slo-tpot-ms",
  "x-gnomon-by",
]);
/** Written on what goes to an engine. */
const TO_ENGINES: ReadonlySet<string> = new Set(["authorization", "x-data-parallel-rank"]);
