import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { CLUSTER_FOLDER } from "../live/discovery/real-cluster.ts";
import { HELM } from "./helm-chart.ts";
import { commandsOfWay, type Walk, type Way } from "./kubelet/install-walk.ts";
import { runInPrivateNetwork, whyNoPrivateNetwork } from "./kubelet/private-network.ts";

const WALK = join(import.meta.dirname, "kubelet/install-walk.ts");

function whyNot(way: Way): string | undefined {
  if (CLUSTER_FOLDER === "") return "TEST_KUBE names no folder with a control plane";
  if (way === "helm" && HELM === "") return "TEST_HELM names no helm";
  return whyNoPrivateNetwork();
}

test("k8s/README.md prints the whole way, by kustomize and by Helm", () => {
  const verbs = (way: Way): string[] => commandsOfWay(way).map((command) => command.split(" ").slice(0, 4).join(" "));
  const asked = ["kubectl -n infer create", "kubectl -n infer expose", "kubectl -n infer rollout"];
  const answered = [...asked, "kubectl -n infer port-forward", "curl -s -i --retry"];
  assert.deepEqual(verbs("kustomize"), ["kubectl create namespace infer", "kubectl apply -k k8s/base", ...answered]);
  const upgraded = ["helm upgrade gnomon deploy/helm", "kubectl -n infer rollout"];
  assert.deepEqual(verbs("helm"), ["helm install gnomon deploy/helm", ...answered, ...upgraded]);
});

for (const way of ["kustomize", "helm"] as const) {
  const skip = whyNot(way) ?? false;
  const title = `from an empty namespace to an answer by ${way}, each command as it is printed`;
  test(title, { skip, timeout: 280_000 }, async (t) => {
    const { code, stdout, stderr } = await runInPrivateNetwork(WALK, [way]);
    assert.equal(code, 0, stderr);
    const { commands, pods, millis } = JSON.parse(stdout.trim().split("\n").at(-1)!) as Walk;
    for (const { command, code: status, output } of commands)
      assert.equal(status, 0, `${command}\n${output}\n${stderr}`);
    assert.equal(commands.length, commandsOfWay(way).length);
    const answer = commands.find(({ command }) => command.startsWith("curl"))!.output;
    assert.match(answer, /^HTTP\/1\.1 200 /);
    assert.match(answer, /^x-gnomon-endpoint: http:\/\/10\.77\.1\.\d+:8000\r?$/m);
    assert.match(answer, /"finish_reason":"length"/);
    t.diagnostic(`${Math.round(millis)} ms; pods: ${pods.length}`);
    if (way === "helm")
      assert.ok(pods.filter((pod) => pod.includes("serve")).length >= 4, "two, and two after the upgrade");
  });
}
