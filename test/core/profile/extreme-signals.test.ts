import assert from "node:assert/strict";
import { test } from "node:test";
import { loadProfile, profileNames } from "#config/profile-file.ts";
import { type Load, REPORTED_MAX } from "#core/endpoint/endpoint.ts";
import { ApproximateIndex } from "#core/prefix/approximate.ts";
import { Router } from "#core/router.ts";
import { REQUEST_TOKENS_MAX } from "#core/base/units.ts";
import { load, request } from "../state.ts";

const NAMES = ["running", "waiting", "ttftMicros", "tpotMicros", "tokensPerSecond", "adaptersMax", "watts"] as const;

/** Requests that begin and end while `extreme` endpoints of three report `reported`; each is decided, and some get an endpoint. */
function routed(name: string, reported: Partial<Load>, extreme: number, tokens: number): void {
  const profiles = { [name]: loadProfile(name).spec };
  const router = new Router({
    seed: 1,
    profiles,
    defaultProfile: name,
    blockTokens: 16,
    staleAfterMicros: 1e9,
    index: new ApproximateIndex(),
  });
  const ids = ["a", "b", "c"];
  ids.forEach((id, i) => {
    const size = i < extreme ? Math.max(1, reported.running ?? 1_000) : 1_000;
    const labels = { role: i === 0 ? "prefill" : "decode" };
    const endpoint = { id, models: ["m"], labels, kvCapacityTokens: size, concurrencyMax: size };
    router.accept({ kind: "endpoint-joined", at: 0, endpoint });
  });
  let count = 0;
  for (let at = 1_000; at < 9_000; at += 1_000) {
    ids.forEach((endpoint, i) => {
      const usual = { running: 1, waiting: 0, kvUtilization: 0.1 };
      router.accept({
        kind: "load-observed",
        at,
        endpoint,
        load: load(i < extreme ? { ...usual, ...reported } : usual),
      });
    });
    const id = String(at);
    const asked = request({ id, model: "m", promptTokens: tokens, outputTokensMax: tokens });
    const decision = router.accept({ kind: "request-arrived", at, request: asked });
    if (decision?.kind === "routed") count++;
    if (at % 3_000 === 0) continue;
    router.accept({ kind: "first-token", at: at + 1, requestId: id });
    const counts = { promptTokens: tokens, cachedTokens: 0, outputTokens: tokens };
    router.accept({ kind: "request-finished", at: at + 2, requestId: id, outcome: "ok", ...counts });
  }
  assert.ok(count > 0);
}

for (const name of profileNames()) {
  test(`${name}: whatever an engine reports, each request is decided`, () => {
    for (const figure of [0, REPORTED_MAX]) {
      const all = Object.fromEntries(NAMES.map((one) => [one, figure]));
      for (const extreme of [1, 3]) for (const tokens of [1, REQUEST_TOKENS_MAX]) routed(name, all, extreme, tokens);
    }
    for (const one of NAMES) routed(name, { [one]: REPORTED_MAX }, 1, REQUEST_TOKENS_MAX);
  });
}
