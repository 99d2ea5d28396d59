import assert from "node:assert/strict";
import { test } from "node:test";
import { adminAccess } from "#live/admin/admin-access.ts";

const HERE = { headers: { host: "localhost:8080" }, remoteAddress: "::ffff:127.0.0.1" };

test("without a token only this machine may look, asked for by its own name and through nobody", () => {
  const open = adminAccess(undefined);
  assert.equal(open(HERE), "allowed");
  assert.equal(open({ ...HERE, remoteAddress: "10.0.0.7" }), "forbidden");
  assert.equal(open({ ...HERE, remoteAddress: undefined }), "forbidden");
  assert.equal(open({ ...HERE, headers: { host: "gnomon.example" } }), "forbidden");
  for (const name of ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"]) {
    assert.equal(open({ ...HERE, headers: { ...HERE.headers, [name]: "" } }), "forbidden", name);
  }
});

test("with a token whoever sends it may look, from anywhere; nobody else, from nowhere", () => {
  const closed = adminAccess("secret");
  assert.equal(closed(HERE), "unauthorized");
  const far = { remoteAddress: "10.0.0.7" };
  assert.equal(closed({ ...far, headers: { authorization: "Bearer secret" } }), "allowed");
  assert.equal(closed({ ...far, headers: { "x-api-key": "secret" } }), "allowed");
  assert.equal(closed({ ...far, headers: { authorization: "Bearer secre" } }), "unauthorized");
});
