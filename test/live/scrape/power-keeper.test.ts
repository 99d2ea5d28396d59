import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { atOnce } from "#live/base/loop-turn.ts";
import { dcgmPage } from "#live/scrape/dcgm-page.ts";
import { PowerKeeper } from "#live/scrape/power-keeper.ts";

const gpu = (name: string, host: string, number: number, pod: string, value: string) =>
  `${name}{gpu="${number}",UUID="GPU-${host}-${number}",Hostname="${host}",modelName="H100",pod="${pod}"} ${value}\n`;

const PAGE = `# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W).
# TYPE DCGM_FI_DEV_POWER_USAGE gauge
${gpu("DCGM_FI_DEV_POWER_USAGE", "n1", 0, "vllm-0", "310.5")}${gpu("DCGM_FI_DEV_POWER_USAGE", "n1", 1, "vllm-0", "289.5")}${gpu("DCGM_FI_DEV_POWER_USAGE", "n1", 2, "vllm-1", "100")}${gpu("DCGM_FI_DEV_GPU_UTIL", "n1", 0, "vllm-0", "100")}${gpu("DCGM_FI_PROF_SM_ACTIVE", "n1", 0, "vllm-0", "0.6")}${gpu("DCGM_FI_DEV_GPU_UTIL", "n1", 1, "vllm-0", "80")}${gpu("DCGM_FI_DEV_POWER_USAGE", "n1", 3, "vllm-1", "oops")}DCGM_FI_DEV_GPU_TEMP{gpu="0"} 50
`;

test("a GPU's profiled activity counts before its utilization, which is a percentage", () => {
  const { devices, malformed } = atOnce(dcgmPage(PAGE));
  assert.deepEqual(
    devices.map(({ watts, smUtilization }) => [watts, smUtilization]),
    [
      [310.5, 0.6],
      [289.5, 0.8],
      [100, undefined],
    ],
  );
  assert.equal(malformed, 1);
  const broken = atOnce(dcgmPage(gpu("DCGM_FI_DEV_POWER_USAGE", "n1", 0, "vllm-0", "1e308"))).devices;
  assert.equal(broken[0]?.watts, undefined);
});

test("an endpoint's GPUs are those its labels name: power summed, activity averaged, old pages left out", async (t) => {
  let answers = 0;
  const exporter = createServer((_request, response) => {
    if (++answers > 1) response.statusCode = 500;
    response.end(PAGE);
  });
  await new Promise<void>((resolve) => exporter.listen(0, "127.0.0.1", resolve));
  t.after(() => exporter.close());
  let now = 0;
  const keeper = new PowerKeeper({
    exporters: [`http://127.0.0.1:${(exporter.address() as AddressInfo).port}/metrics`],
    devices: { both: { Hostname: "n1", gpu: "0, 1" }, third: { UUID: "GPU-n1-2" }, nobody: { Hostname: "n2" } },
    intervalMillis: 60_000,
    timeoutMillis: 60_000,
    staleAfterMillis: 10,
    pageBytesMax: 65_536,
    now: () => now,
  });
  t.after(() => keeper.stop());
  assert.deepEqual(keeper.of("both", {}), { watts: undefined, smUtilization: undefined });
  await keeper.scrape();
  assert.deepEqual(keeper.of("both", {}), { watts: 600, smUtilization: 0.7 });
  assert.deepEqual(keeper.of("third", {}), { watts: 100, smUtilization: undefined });
  assert.deepEqual(keeper.of("nobody", {}), { watts: undefined, smUtilization: undefined });
  assert.deepEqual(keeper.of("pod", { "kubernetes.io/pod": "vllm-1" }), { watts: 100, smUtilization: undefined });
  assert.deepEqual(keeper.of("unlabelled", {}), { watts: undefined, smUtilization: undefined });
  now = 10_001;
  await keeper.scrape();
  assert.deepEqual(keeper.of("both", {}), { watts: undefined, smUtilization: undefined }, "unknown is not zero");
  assert.equal(keeper.counts.errors, 1);
});
