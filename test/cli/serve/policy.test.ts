import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { policyCommand } from "#cli/policy/policy.ts";
import { ConfigMap, policyStorm, traceOfStorm } from "../../../bench/policy/storm.ts";
import { inProcess } from "../in-process.ts";
import { answeringEngine } from "./answering-engine.ts";
import { emulatedHere } from "./emulated-here.ts";
import { gatewayHere } from "./gateway-here.ts";

const TOKEN = "a-token-for-this-test";

test("policies change under load by file and admin API: no request fails, decisions name their version, the trace replays", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-policy-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const trace = join(directory, "trace");
  const fixed = {
    listen: { port: 0 },
    admin: { tokenEnv: "STORM_TOKEN" },
    policy: { watchMillis: 10 },
    record: { directory: trace },
    endpoints: (await emulatedHere(t, 2)).map((url) => ({ url })),
    log: { level: "error" },
  };
  const configMap = new ConfigMap(directory, fixed);
  const { url, adminUrl, stop } = await gatewayHere(t, ["--config", configMap.file], { STORM_TOKEN: TOKEN });
  const storm = { url, adminUrl, token: TOKEN, configMap, fixed, changes: 12, invalid: 6, clients: 4 };
  const result = await policyStorm(storm);
  assert.deepEqual([result.failed, result.failures], [0, []]);
  assert.deepEqual(result.slipped, []);
  assert.equal(result.refused.length, 6);
  assert.deepEqual(result.applied, { start: 1, admin: 6, file: 6 });
  assert.equal(result.versionInForce, 13);
  assert.ok(result.versions.size > 1, [...result.versions].join(" "));

  await drivenByCommands(t, adminUrl);

  const page = await (await fetch(`${url}/metrics`)).text();
  assert.match(page, /^gnomon_policy_version 15$/m);
  assert.match(page, /^gnomon_policy_changes_total\{source="file",outcome="applied"\} 6$/m);
  await stop();
  const { replay, decisions, unnamed, changes } = await traceOfStorm(trace);
  assert.equal(changes, 14);
  assert.equal(unnamed, 0);
  assert.ok(decisions >= result.requests);
  const { differences, unverifiable, decisions: compared } = replay;
  assert.deepEqual(
    [differences, unverifiable, compared],
    [0, 0, decisions],
    replay.first?.what ?? replay.reasons.join(),
  );
});

async function drivenByCommands(t: TestContext, url: string): Promise<void> {
  process.env["STORM_TOKEN"] = TOKEN;
  t.after(() => delete process.env["STORM_TOKEN"]);
  const policy = (...argv: string[]) =>
    inProcess(t, [policyCommand()], ["policy", ...argv, "--url", url, "--token-env", "STORM_TOKEN"]);
  const got = await policy("get");
  assert.equal(got.code, 0, got.said);
  assert.match(got.out, /^# version 13, .* from file, .*\nrouting:\n {2}profile: /);
  const set = await policy(
    "set",
    "--set",
    "routing.profile=round-robin",
    "--set",
    "limits.attemptsMax=9",
    "--by",
    "me",
  );
  assert.equal(set.code, 0, set.said);
  assert.match(set.out, /^in force: version 14\n {2}routing\.profile: ".*" → "round-robin"\n/);
  assert.match(set.out, /^ {2}limits\.attemptsMax: \d → 9$/m);
  const wrong = await policy("set", "--set", "limits.attemptsMax=99");
  assert.equal(wrong.code, 2);
  assert.match(wrong.said, /^limits\.attemptsMax: expected an integer in \[1, 16\], got 99$/);
  const tried = await policy("rollback", "13", "--dry-run");
  assert.match(
    tried.out,
    /^it could be put into force; nothing was changed: version 14\n {2}routing\.profile: "round-r/,
  );
  const late = await policy("rollback", "13", "--if-version", "13");
  assert.deepEqual([late.code, late.said], [2, "version: expected 13 in force, got 14"]);
  const back = await policy("rollback", "13", "--by", "me");
  assert.equal(back.code, 0, back.said);
  assert.match(back.out, /^in force: version 15\n/);
  const again = await policy("get");
  assert.equal(again.out.split("\n").slice(1).join("\n"), got.out.split("\n").slice(1).join("\n"));
  const history = await policy("history");
  assert.match(history.out, /15 .*│ admin +│ me +│.*│ rollback to 13 /);
  assert.match(history.out, /Refused, nothing changed:[^]*limits\.attemptsMax/);
}

test("policy set leaves alone what it does not name, shows what it changes, and replaces where that is asked for", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "gnomon-policy-set-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const args = [
    "--port",
    "0",
    "--endpoint",
    (await answeringEngine(t)).url,
    "--set",
    "admin.tokenEnv=STORM_TOKEN",
    "--log-level",
    "error",
  ];
  const { adminUrl: url } = await gatewayHere(t, args, { STORM_TOKEN: TOKEN });
  process.env["STORM_TOKEN"] = TOKEN;
  t.after(() => delete process.env["STORM_TOKEN"]);
  const policy = (...argv: string[]) =>
    inProcess(t, [policyCommand()], ["policy", ...argv, "--url", url, "--token-env", "STORM_TOKEN"]);
  const limit = join(directory, "limit.yaml");
  writeFileSync(
    limit,
    "admission: { limits: { all: { type: token-bucket, bucketTokens: 60, refillPerSecond: 1 } } }\n",
  );
  const inForce = async () => (await policy("get")).out;

  await policy("set", "--set", "routing.profile=lmetric", "--set", "routing.models={m: sticky}");
  const tried = await policy("set", limit, "--dry-run");
  const made = await policy("set", limit);
  assert.equal(tried.out.replace(/^.*\n/, ""), made.out.replace(/^.*\n/, ""));
  assert.match(made.out, /^in force: version 3\n {2}admission\.limits\.all: nothing → \{"type":"token-bucket".*\}\n$/);
  assert.match(await inForce(), /^ {2}profile: lmetric$[^]*all:$/m);
  assert.match((await policy("set", limit)).out, /^nothing to change, it is what is in force: version 3\n$/);
  assert.match((await policy("set", limit, "--dry-run")).out, /^nothing to change/);

  // An empty mapping is a value.
  const emptied = await policy("set", "--set", "routing.models={}");
  assert.match(emptied.out, /^in force: version 4\n {2}routing\.models\.m: "sticky" → nothing\n/);
  assert.match((await policy("set", "--set", "routing.models={}")).out, /^nothing to change/);

  // As in a file, null takes away what has a name of its own, and gives any other key its default.
  await policy("set", "--set", "routing.models={m: sticky, n: lmetric}");
  const away = ["routing.models.m", "admission.limits.all", "routing.profile"].flatMap((key) => [
    "--set",
    `${key}=null`,
  ]);
  const taken = await policy("set", ...away, "--dry-run");
  assert.deepEqual(
    taken.out
      .split("\n")
      .slice(1, -1)
      .map((line) => line.trim().replace(/: .* → /, ": ")),
    ['routing.profile: "gnomon"', "routing.models.m: nothing", "admission.limits.all: nothing"],
    taken.said,
  );

  const replaced = await policy("set", limit, "--replace");
  assert.match(replaced.out, /^in force: version 6\n {2}routing\.profile: "lmetric" → "gnomon"\n/);
  const wrong = await policy("set", "--set", "routing.profile=lmetric", "--replace");
  assert.deepEqual(
    [wrong.code, wrong.said.startsWith("--replace: expected together with a file")],
    [2, true],
    wrong.said,
  );

  const patch = await fetch(`${url}/gnomon/admin/policy?dry-run=true`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${TOKEN}` },
    body: '{"limits":{"attemptsMax":9}}',
  });
  const unclear = await fetch(`${url}/gnomon/admin/policy?force=perhaps`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${TOKEN}` },
    body: "{}",
  });
  assert.equal(unclear.status, 400);
  const changes = [{ path: "limits.attemptsMax", before: 3, after: 9 }];
  assert.deepEqual(await patch.json(), { outcome: "checked", version: 6, changes });
});

test("the admin API is closed without a token, to loopback too, and to whoever has another one", async (t) => {
  const { url } = await answeringEngine(t);
  const args = ["--port", "0", "--endpoint", url, "--log-level", "error"];
  const { adminUrl: closedUrl } = await gatewayHere(t, args);
  const open = [...args, "--set", "admin.tokenEnv=STORM_TOKEN"];
  const { adminUrl: openUrl } = await gatewayHere(t, open, { STORM_TOKEN: TOKEN });
  const status = async (url: string, method: string, token: string, below = "") => {
    const headers = { authorization: `Bearer ${token}` };
    const body = method === "GET" ? {} : { body: "{}" };
    return (await fetch(`${url}/gnomon/admin/policy${below}`, { method, headers, ...body })).status;
  };
  for (const method of ["GET", "PUT", "PATCH", "POST"]) {
    assert.equal(await status(closedUrl, method, TOKEN), 403, method);
    assert.equal(await status(openUrl, method, "another"), 401, method);
    assert.equal(await status(openUrl, method, TOKEN), 200, method);
  }
  assert.equal(await status(closedUrl, "POST", TOKEN, "/rollback"), 403);
  assert.equal(await status(openUrl, "GET", TOKEN, "/history"), 200);
  const large = await fetch(`${openUrl}/gnomon/admin/policy`, {
    method: "PUT",
    headers: { authorization: `Bearer ${TOKEN}` },
    body: JSON.stringify({ profiles: "x".repeat(300_000) }),
  });
  assert.equal(large.status, 413);
  const status404 = await fetch(`${openUrl}/gnomon/admin/policy?version=99`, {
    headers: { authorization: `Bearer ${TOKEN}` },
  });
  assert.equal(status404.status, 404);
});
