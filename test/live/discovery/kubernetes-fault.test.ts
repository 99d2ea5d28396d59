import assert from "node:assert/strict";
import { test } from "node:test";
import { detailOf, StatusError, statusDetail } from "#live/discovery/kubernetes-fault.ts";

test("a status that a person can act on has its meaning beside it; any other one is named", () => {
  const meanings: readonly (readonly [number, RegExp])[] = [
    [401, /does not accept the credential/],
    [403, /Role must grant list and watch/],
    [404, /CustomResourceDefinition/],
    [429, /asks for fewer requests/],
  ];
  for (const [status, meaning] of meanings) {
    assert.match(detailOf(new StatusError(status)), meaning);
    assert.ok(detailOf({ code: status }).startsWith(`status ${status}: `));
  }
  assert.equal(statusDetail(500), "status 500");
  assert.equal(statusDetail(undefined), "status unknown");
});

test("a timeout is one, though its exception has a number of its own", async () => {
  const error: unknown = await new Promise((resolve) => {
    const signal = AbortSignal.timeout(1);
    signal.addEventListener("abort", () => resolve(signal.reason), { once: true });
  });
  assert.equal((error as DOMException).code, 23);
  assert.equal(detailOf(error), "the API server did not answer in 30 s");
  assert.equal(detailOf(new DOMException("x", "AbortError")), "the API server cannot be read (AbortError)");
});

test("of an error only its kind and the system's code are shown, never its text", () => {
  const secret = "Bearer abc";
  const refused = Object.assign(new Error(secret), { code: "ECONNREFUSED" });
  const late = Object.assign(new Error(secret), { name: "TimeoutError" });
  assert.equal(detailOf(refused), "the API server cannot be reached (ECONNREFUSED)");
  assert.equal(detailOf(late), "the API server did not answer in 30 s");
  assert.equal(detailOf(new TypeError(secret, { cause: refused })), "the API server cannot be reached (ECONNREFUSED)");
  assert.equal(detailOf(new TypeError(secret)), "the API server cannot be read (TypeError)");
  assert.equal(detailOf(secret), "the API server cannot be read");
});
