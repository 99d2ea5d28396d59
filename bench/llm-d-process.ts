import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { kept } from "./children.ts";
import { freePort } from "./free-port.ts";
import { pinned } from "./gateway-process.ts";

/** llm-d-router's default scorers over a list of engines in a file; their gauges are scraped. */
function configOf(endpoints: string): string {
  return `apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
plugins:
- {type: file-discovery, parameters: {path: ${endpoints}, watchFile: false}}
- {type: single-profile-handler}
- {type: metrics-data-source}
- {type: core-metrics-extractor}
- {type: prefix-cache-scorer}
- {type: queue-scorer}
- {type: kv-cache-utilization-scorer}
- {type: max-score-picker}
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: prefix-cache-scorer, weight: 3}
  - {pluginRef: queue-scorer, weight: 2}
  - {pluginRef: kv-cache-utilization-scorer, weight: 2}
  - {pluginRef: max-score-picker}
dataLayer:
  injectDefaults: false
  discovery: {pluginRef: file-discovery}
  sources:
  - pluginRef: metrics-data-source
    extractors: [{pluginRef: core-metrics-extractor}]
`;
}

/** llm-d-router's endpoint picker, one process on the first core. */
export async function startLlmD(
  binary: string,
  scratch: string,
  engines: readonly number[],
): Promise<{ readonly port: number; readonly pid: number }> {
  const [port, health, metrics] = [await freePort(), await freePort(), await freePort()];
  const [endpoints, config] = [join(scratch, "endpoints.yaml"), join(scratch, "llm-d.yaml")];
  const listed = engines.map((engine, i) => `- {name: engine-${i}, address: 127.0.0.1, port: "${engine}"}`);
  writeFileSync(endpoints, `endpoints:\n${listed.join("\n")}\n`);
  writeFileSync(config, configOf(endpoints));
  const ports = [`--grpc-port=${port}`, `--grpc-health-port=${health}`, `--metrics-port=${metrics}`];
  const flags = ["--secure-serving=false", "--pool-name=bench", "--pool-namespace=bench", `--config-file=${config}`];
  const [command, args] = pinned(0, binary, [...ports, ...flags]);
  const child = spawn(command, args, {
    stdio: ["ignore", "ignore", "ignore"],
    env: { ...process.env, GOMAXPROCS: "1" },
  });
  return { port, pid: kept(child).pid! };
}
