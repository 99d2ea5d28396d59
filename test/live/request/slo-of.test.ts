import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestHeaders } from "#live/http/headers.ts";
import { sloOf } from "#live/request/slo-rules.ts";

const of = (headers: Readonly<Record<string, string>>) => sloOf(new RequestHeaders(Object.entries(headers).flat()));

test("targets are milliseconds, whole or not, each by itself", () => {
  assert.equal(of({}), undefined);
  assert.deepEqual(of({ "x-gnomon-slo-ttft-ms": "500" }), { ttftMicros: 500_000 });
  assert.deepEqual(of({ "x-gnomon-slo-tpot-ms": " 12.5 " }), { tpotMicros: 12_500 });
  assert.deepEqual(of({ "x-gnomon-slo-ttft-ms": "500", "x-gnomon-slo-tpot-ms": "30" }), {
    ttftMicros: 500_000,
    tpotMicros: 30_000,
  });
});

test("what is no target is refused by the header's name", () => {
  for (const text of ["0", "-1", "abc", "1e3", "0.0001", "1234567890123"]) {
    assert.match(of({ "x-gnomon-slo-ttft-ms": text }) as string, /^x-gnomon-slo-ttft-ms: expected milliseconds/, text);
    assert.match(of({ "x-gnomon-slo-tpot-ms": text }) as string, /^x-gnomon-slo-tpot-ms: expected milliseconds/, text);
  }
});
