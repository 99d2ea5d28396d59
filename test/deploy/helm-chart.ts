import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { documentsOf, type Manifest } from "./manifest-components.ts";

/** The program; "" where this machine has none. */
export const HELM = process.env["TEST_HELM"] ?? "";

const EVERYTHING = {
  autoscaling: { enabled: true },
  monitoring: { enabled: true },
  networkPolicy: { enabled: true },
  traces: { enabled: true, storageClass: "fast" },
  tokens: { secretName: "mine", clientKeys: true },
  tls: { secretName: "certificate" },
  image: { digest: `sha256:${"a".repeat(64)}`, pullSecrets: [{ name: "registry" }] },
  nodeSelector: { pool: "cpu" },
  profile: "lmetric",
  config: { limits: { requestsInFlightMax: 100 } },
};

/** Values as people set them. */
export const VALUES: readonly (readonly [name: string, values: object])[] = [
  ["defaults", {}],
  ["gateway-with-everything", EVERYTHING],
  ["picker", { mode: "picker", inferencePool: { create: true } }],
  ["picker-with-everything", { ...EVERYTHING, mode: "picker", inferencePool: { create: true } }],
  ["picker-of-a-pool", { mode: "picker", engines: { pool: "llama" } }],
  ["selector", { engines: { selector: "app=vllm", namespace: "engines" } }],
  ["listed", { engines: { urls: ["http://vllm-0.vllm:8000"] }, redis: { enabled: false }, replicas: 1 }],
  ["a-redis-of-theirs", { redis: { url: "redis://redis.cache:6379" } }],
];

/** The chart's manifests with these values, released as gnomon in namespace infer. */
export function charted(chart: string, values: object): Manifest[] {
  const folder = mkdtempSync(join(tmpdir(), "gnomon-chart-"));
  try {
    const file = join(folder, "values.yaml");
    writeFileSync(file, stringify(values));
    const argv = ["template", "gnomon", chart, "-n", "infer", "-f", file];
    return documentsOf(execFileSync(HELM, argv, { encoding: "utf8", stdio: "pipe" }));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
