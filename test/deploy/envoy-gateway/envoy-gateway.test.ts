import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CLUSTER_FOLDER } from "../../live/discovery/real-cluster.ts";
import { runInPrivateNetwork, whyNoPrivateNetwork } from "../kubelet/private-network.ts";
import type { GatewayWalk } from "./envoy-gateway-walk.ts";

const { TEST_ENVOY = "", TEST_ENVOY_GATEWAY = "" } = process.env;
const WALK = join(import.meta.dirname, "envoy-gateway-walk.ts");

function whyNot(): string | undefined {
  if (CLUSTER_FOLDER === "") return "TEST_KUBE names no folder with a control plane";
  if (TEST_ENVOY === "") return "TEST_ENVOY names no binary of Envoy";
  if (TEST_ENVOY_GATEWAY === "")
    return "TEST_ENVOY_GATEWAY names no folder that test/deploy/envoy-gateway/build.sh made";
  for (const name of ["envoy-gateway", "ai-gateway-controller", "definitions"])
    if (!existsSync(join(TEST_ENVOY_GATEWAY, name))) return `TEST_ENVOY_GATEWAY has no ${name}`;
  return whyNoPrivateNetwork();
}

test(
  "Envoy Gateway with Envoy AI Gateway: every request to an InferencePool is answered while picker and engines are replaced",
  { skip: whyNot() ?? false, timeout: 280_000 },
  async (t) => {
    const { code, stdout, stderr } = await runInPrivateNetwork(WALK, []);
    assert.equal(code, 0, stderr);
    const { phases, questions, drained, pods, refused } = JSON.parse(stdout.trim().split("\n").at(-1)!) as GatewayWalk;
    for (const { during, sent, others } of phases) {
      t.diagnostic(`${during}: ${sent} requests`);
      assert.deepEqual(others, {}, `${during}\n${refused.slice(-5).join("\n")}`);
    }
    const sums = phases.map(({ sent }) => sent);
    assert.ok(sums[0]! >= 60 && sums[1]! >= 320 && sums[2]! >= 320, String(sums));
    // The first one is asked as long as proxies reach it, some seconds into the next phase.
    assert.ok(questions > 0, "the second picker was asked");
    assert.match(drained, /"requestsCut":0\b/, "the first one ended by itself");
    const engines = pods.filter((pod) => pod.includes("emulate")).length;
    assert.deepEqual([engines, pods.filter((pod) => pod.includes("serve")).length], [6, 2], pods.join("\n"));
  },
);
