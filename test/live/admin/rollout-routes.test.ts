import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpBindings } from "@hono/node-server";
import { Hono } from "hono";
import type { RolloutAdmin, RolloutReply, RolloutStepRequest } from "#live/admin/rollout-admin.ts";
import { rolloutRoutes } from "#live/admin/rollout-routes.ts";
import type { RolloutView } from "#live/admin/rollout-view.ts";

const ROLLOUT = { name: "to a/b", phase: "running" } as RolloutView;

/** A admin that has one rollout, refuses what it is told to, and remembers what it was asked for. */
function app(refuses: readonly string[] = [], unkept: readonly string[] = []) {
  const asked: unknown[] = [];
  const outcome = (request: unknown): Promise<RolloutReply> => {
    asked.push(request);
    const refused = refuses.length > 0;
    return Promise.resolve(
      refused ? { outcome: "refused", problems: refuses } : { outcome: "applied", rollout: ROLLOUT, unkept },
    );
  };
  const admin: RolloutAdmin = {
    bytesMax: 1024,
    view: () => ({ at: "", rollouts: [ROLLOUT] }),
    start: (document, request) => outcome({ document, ...request }),
    step: (request: RolloutStepRequest) => outcome(request),
    remove: (rollout) => outcome({ remove: rollout }),
  };
  const made = new Hono<{ Bindings: HttpBindings }>();
  rolloutRoutes(admin)(made);
  const ask = async (method: string, path: string, body?: string) => {
    const headers = { "x-gnomon-by": "me" };
    const answer = await made.request(`/gnomon/admin/rollout${path}`, {
      method,
      headers,
      ...(body !== undefined && { body }),
    });
    return { status: answer.status, text: await answer.text() };
  };
  return { ask, asked };
}

test("each step goes to the admin with who asked; names are as in any URL; YAML is as good as JSON", async () => {
  const { ask, asked } = app();
  const one = `/${encodeURIComponent(ROLLOUT.name)}`;
  assert.equal((await ask("POST", "?dry-run=true", "name: try\narms: []\n")).status, 200);
  for (const step of ["pause", "resume", "advance", "rollback"])
    assert.equal((await ask("POST", `${one}/${step}`)).status, 200);
  assert.equal((await ask("POST", `${one}/promote`, '{"arm":"other","reason":"it is better"}')).status, 200);
  assert.equal((await ask("DELETE", one)).status, 200);
  assert.equal((await ask("GET", one)).status, 200);
  assert.deepEqual(asked[0], { document: { name: "try", arms: [] }, by: "me", dryRun: true });
  assert.deepEqual(asked[5], { rollout: "to a/b", step: "promote", by: "me", arm: "other", reason: "it is better" });
  assert.deepEqual(asked[6], { remove: "to a/b" });
});

test("what is not there, too large, no document or refused is answered with what is expected, and reaches nobody", async () => {
  const { ask, asked } = app();
  const one = `/${encodeURIComponent(ROLLOUT.name)}`;
  const wrong: readonly [string, string, string | undefined, number, RegExp][] = [
    ["GET", "/gone", undefined, 404, /rollout: expected one of to a\/b/],
    ["POST", "/gone/pause", undefined, 404, /expected one of to a\/b/],
    ["DELETE", "/gone", undefined, 404, /expected one of to a\/b/],
    ["POST", "?dry-run=maybe", "{}", 400, /dry-run: expected true or false/],
    ["POST", "", "{", 400, /body: expected JSON or YAML/],
    ["POST", "", "x".repeat(2000), 413, /at most 1024 bytes/],
    ["POST", `${one}/promote`, '{"am":"other"}', 400, /am: expected one of arm, reason/],
    ["POST", `${one}/promote`, '{"arm":7}', 400, /arm: expected a text/],
    ["POST", `${one}/promote`, '{"evenSo":"yes"}', 400, /evenSo: expected true or false, got \\"yes\\"/],
  ];
  for (const [method, path, body, status, problem] of wrong) {
    const answer = await ask(method, path, body);
    assert.equal(answer.status, status, path);
    assert.match(answer.text, problem);
  }
  assert.deepEqual(asked, []);
  const refused = await app(["design.kind: expected one of split"]).ask("POST", "", "{}");
  assert.equal(refused.status, 400);
  assert.match(refused.text, /"problems":\["design\.kind: expected one of split"\]/);
});

test("what holds and is not kept yet is answered with 202 and why", async () => {
  const { ask, asked } = app([], ["not on the disk"]);
  const path = `/${encodeURIComponent(ROLLOUT.name)}/promote`;
  const { status, text } = await ask("POST", path, '{"arm":"other","evenSo":true}');
  assert.equal(status, 202);
  assert.deepEqual((JSON.parse(text) as { unkept: unknown }).unkept, ["not on the disk"]);
  assert.equal((asked[0] as { evenSo: unknown }).evenSo, true);
});
