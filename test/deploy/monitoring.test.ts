import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { before, test } from "node:test";
import { parse, stringify } from "yaml";
import { z } from "zod";
import { startedGateway } from "../serve/started-gateway.ts";
import { servePlan } from "../../src/cli/serve/serve-options.ts";

const DEPLOY = resolve(import.meta.dirname, "../../deploy");
const DASHBOARDS = join(DEPLOY, "grafana/dashboards");
const RULES = join(DEPLOY, "prometheus/gnomon-alerts.yaml");
const RULE_TESTS = join(DEPLOY, "prometheus/gnomon-alerts.test.yaml");
const METRICS_PAGE = resolve(DEPLOY, "../docs/reference/metrics.md");

const target = z.looseObject({ expr: z.string() });
const panel = z.looseObject({
  id: z.int(),
  type: z.string(),
  title: z.string().min(1),
  gridPos: z.object({ h: z.int(), w: z.int(), x: z.int(), y: z.int() }),
  targets: z.array(target).optional(),
});
const dashboard = z.looseObject({
  uid: z.string().min(1),
  title: z.string().min(1),
  panels: z.array(panel).min(1),
  templating: z.looseObject({ list: z.array(z.looseObject({ name: z.string(), query: z.unknown() })) }),
  annotations: z.looseObject({ list: z.array(target) }),
});
const rules = z.object({
  groups: z.array(
    z.object({
      name: z.string(),
      rules: z.array(
        z.object({
          alert: z.string(),
          expr: z.string(),
          for: z.string().optional(),
          labels: z.object({ severity: z.enum(["critical", "warning", "info"]) }),
          annotations: z.object({ summary: z.string(), description: z.string() }),
        }),
      ),
    }),
  ),
});

const boards = readdirSync(DASHBOARDS).map((file) => ({
  file,
  board: dashboard.parse(JSON.parse(readFileSync(join(DASHBOARDS, file), "utf8"))),
}));
const alerts = rules.parse(parse(readFileSync(RULES, "utf8"))).groups.flatMap((group) => group.rules);

/** Every expression, and where it stands. */
const expressions = [
  ...alerts.map(({ alert, expr }) => ({ where: alert, expr })),
  ...boards.flatMap(({ file, board }) =>
    [
      ...board.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr }))),
      ...board.annotations.list.map(({ expr }) => ({ title: "annotation", expr })),
    ].map(({ title, expr }) => ({ where: `${file}: ${title}`, expr })),
  ),
];

/** Families of a gateway that runs all it can: names of samples, with the labels that the reference has for them. */
let samples: ReadonlyMap<string, ReadonlySet<string>>;

before(async () => {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-monitoring-"));
  const plan = servePlan({ set: ["shadow.enabled=true"], record: directory, endpoint: ["http://127.0.0.1:9"] }, {});
  const stack = await startedGateway(plan);
  try {
    const page = await (await stack.gateway.app.request("/metrics")).text();
    const reference = readFileSync(METRICS_PAGE, "utf8");
    const families = [...page.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => {
      const [, labels = ""] = new RegExp(`^\\| \`${name}\` \\| \\w+ \\| ([^|]*) \\|`, "m").exec(reference) ?? [];
      const known = new Set(["job", "instance", ...labels.split(", ").map((label) => label.trim())]);
      return { name: name!, type: type!, known };
    });
    samples = new Map(
      families.flatMap(({ name, type, known }): [string, ReadonlySet<string>][] =>
        type === "histogram"
          ? [
              [`${name}_bucket`, new Set([...known, "le"])],
              [`${name}_sum`, known],
              [`${name}_count`, known],
            ]
          : [[name, known]],
      ),
    );
  } finally {
    await stack.close();
    rmSync(directory, { recursive: true });
  }
});

test("every metric that a dashboard or an alert asks for is one of the gateway's, with labels that it has", () => {
  const wrong: string[] = [];
  for (const { where, expr } of expressions) {
    const found = [...expr.matchAll(/\b(gnomon_\w+)(?:\{([^}]*)\})?/g)];
    if (found.length === 0 && !/\bup\{/.test(expr)) wrong.push(`${where}: asks for nothing of the gateway`);
    const grouped = [...expr.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, list]) => list!.split(/,\s*/));
    for (const [, name, selector = ""] of found) {
      const labels = samples.get(name!);
      if (labels === undefined) {
        wrong.push(`${where}: there is no ${name}`);
        continue;
      }
      const used = [...selector.matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)].map(([, label]) => label!);
      for (const label of [...used, ...grouped])
        if (!labels.has(label)) wrong.push(`${where}: ${name} has no label ${label}`);
    }
  }
  assert.deepEqual(wrong, []);
  assert.ok(expressions.length > 80, String(expressions.length));
});

test("dashboards have names of their own, places that do not overlap, and expressions of the chosen gateways", () => {
  assert.equal(new Set(boards.map(({ board }) => board.uid)).size, boards.length);
  for (const { file, board } of boards) {
    const { panels } = board;
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length, file);
    const taken = new Set<string>();
    for (const {
      title,
      gridPos: { x, y, w, h },
    } of panels) {
      assert.ok(x + w <= 24, `${file}: ${title}`);
      for (let i = 0; i < w * h; i++) {
        const place = `${x + (i % w)} ${y + Math.floor(i / w)}`;
        assert.ok(!taken.has(place), `${file}: ${title} lies on another`);
        taken.add(place);
      }
    }
    const names = new Set(board.templating.list.map(({ name }) => name));
    for (const { title, targets = [] } of panels) {
      for (const { expr } of targets) {
        assert.match(expr, /job=~"\$job",instance=~"\$instance"/, `${file}: ${title}`);
        const variables = [...expr.matchAll(/\$(\w+)/g)]
          .map(([, name]) => name!)
          .filter((name) => !name.startsWith("__"));
        assert.deepEqual(
          variables.filter((name) => !names.has(name)),
          [],
          `${file}: ${title}`,
        );
      }
    }
  }
});

test("every alert has a case that fires it, and one beside it that does not", () => {
  const suite = z.looseObject({
    tests: z.array(
      z.looseObject({
        input_series: z.array(z.unknown()),
        alert_rule_test: z.array(z.looseObject({ alertname: z.string(), exp_alerts: z.array(z.unknown()).min(1) })),
      }),
    ),
  });
  const { tests } = suite.parse(parse(readFileSync(RULE_TESTS, "utf8")));
  const tried = tests.flatMap((one) => one.alert_rule_test.map(({ alertname }) => alertname));
  assert.deepEqual(tried.toSorted(), alerts.map(({ alert }) => alert).toSorted());
  assert.ok(tests.every((one) => one.input_series.length > 1));
});

const PROMTOOL = ["/usr/bin/promtool", "/usr/local/bin/promtool"].find((file) => existsSync(file));
const withoutPromtool = PROMTOOL === undefined ? "there is no promtool (Debian's package prometheus has it)" : false;

function promtool(...args: string[]): void {
  const { status, stdout, stderr } = spawnSync(PROMTOOL!, args, { encoding: "utf8" });
  assert.equal(status, 0, stdout + stderr);
}

test("promtool takes the alert rules, and they fire when they should", { skip: withoutPromtool }, () => {
  promtool("check", "rules", RULES);
  promtool("test", "rules", RULE_TESTS);
});

test(
  "promtool takes every expression of the dashboards, and Prometheus's configuration",
  { skip: withoutPromtool },
  (t) => {
    const folder = mkdtempSync(join(tmpdir(), "gnomon-promtool-"));
    t.after(() => rmSync(folder, { recursive: true }));
    const filled = expressions.map(({ expr }) => expr.replaceAll("$__rate_interval", "1m").replaceAll(/\$\w+/g, "x"));
    const file = join(folder, "rules.yaml");
    writeFileSync(
      file,
      stringify({ groups: [{ name: "all", rules: filled.map((expr, i) => ({ record: `x:${i}`, expr })) }] }),
    );
    promtool("check", "rules", file);
    const text = readFileSync(join(DEPLOY, "prometheus/prometheus.yml"), "utf8");
    writeFileSync(join(folder, "prometheus.yml"), text.replaceAll("/etc/prometheus/gnomon-alerts.yaml", RULES));
    promtool("check", "config", join(folder, "prometheus.yml"));
  },
);

test("compose gives Prometheus and Grafana their files, pins them and opens them to this machine alone", () => {
  const service = z.looseObject({
    image: z.string(),
    command: z.array(z.string()).optional(),
    volumes: z.array(z.string()).optional(),
    ports: z.array(z.string()).optional(),
    environment: z.record(z.string(), z.string()).optional(),
  });
  const compose = z.looseObject({ services: z.record(z.string(), service) });
  const { services } = compose.parse(parse(readFileSync(join(DEPLOY, "compose.yaml"), "utf8")));
  const mounts = new Map<string, string>();
  for (const name of ["prometheus", "grafana"]) {
    const { image, volumes = [], ports = [] } = services[name]!;
    assert.match(image, /:v?\d+\.\d+\.\d+$/, "a version of its own");
    assert.ok(ports.every((port) => port.startsWith("127.0.0.1:")));
    for (const volume of volumes) {
      const [from = "", to = "", mode] = volume.split(":");
      assert.ok(existsSync(join(DEPLOY, from)), from);
      assert.equal(mode, "ro");
      mounts.set(to, join(DEPLOY, from));
    }
  }
  const scrape = z.looseObject({
    rule_files: z.array(z.string()),
    scrape_configs: z.array(
      z.looseObject({ job_name: z.string(), static_configs: z.array(z.object({ targets: z.array(z.string()) })) }),
    ),
  });
  const { rule_files, scrape_configs } = scrape.parse(
    parse(readFileSync(mounts.get("/etc/prometheus/prometheus.yml")!, "utf8")),
  );
  assert.deepEqual(
    rule_files.map((file) => mounts.get(file)),
    [RULES],
  );
  const targets = scrape_configs.flatMap(({ static_configs }) => static_configs.flatMap((one) => one.targets));
  assert.ok(
    targets.every((one) => services[one.split(":")[0]!] !== undefined),
    targets.join(),
  );
  assert.ok(
    scrape_configs.some(({ job_name }) => job_name === "gnomon"),
    "the job that the alerts name",
  );
  const provider = readFileSync(join(DEPLOY, "grafana/provisioning/dashboards/gnomon.yaml"), "utf8");
  const { providers } = z
    .looseObject({ providers: z.array(z.looseObject({ options: z.object({ path: z.string() }) })) })
    .parse(parse(provider));
  assert.deepEqual(
    providers.map(({ options }) => mounts.get(options.path)),
    [DASHBOARDS],
  );
  const home = services["grafana"]?.environment?.["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] ?? "";
  assert.ok(existsSync(join(DASHBOARDS, home.replace(`${providers[0]!.options.path}/`, ""))));
});
