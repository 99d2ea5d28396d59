import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { startPodList } from "../../test/serve/migrate/record/pod-list.ts";
import { kept } from "../children.ts";
import { freePort } from "../free-port.ts";
import { type PeerProgram, peerCommand } from "../peer-process.ts";

/** A router of the field under one of its policies. */
export interface RouterCase {
  readonly router: PeerProgram | "llm-d";
  readonly policy: string;
  /** Options of its command line, or an EndpointPickerConfig. */
  readonly options: readonly string[];
  readonly pickerConfig?: object;
  /** Nothing is left to chance but ties. */
  readonly isDeterministic: boolean;
}

const THRESHOLDS = ["--cache-threshold", "0.7", "--balance-abs-threshold", "3", "--balance-rel-threshold", "1.2"];
const picker = (weights: Readonly<Record<string, number>>): object => ({
  apiVersion: "llm-d.ai/v1alpha1",
  kind: "EndpointPickerConfig",
  plugins: [...Object.keys(weights), "max-score-picker"].map((type) => ({ type })),
  schedulingProfiles: [
    {
      name: "default",
      plugins: [
        ...Object.entries(weights).map(([pluginRef, weight]) => ({ pluginRef, weight })),
        { pluginRef: "max-score-picker" },
      ],
    },
  ],
});

export const ROUTER_CASES: readonly RouterCase[] = [
  ...(["sglang-router", "vllm-router", "smg"] as const).flatMap((router): RouterCase[] => [
    { router, policy: "round_robin", options: ["--policy", "round_robin"], isDeterministic: true },
    { router, policy: "cache_aware", options: ["--policy", "cache_aware"], isDeterministic: true },
    {
      router,
      policy: "cache_aware 0.7 3 1.2",
      options: ["--policy", "cache_aware", ...THRESHOLDS],
      isDeterministic: true,
    },
    { router, policy: "power_of_two", options: ["--policy", "power_of_two"], isDeterministic: false },
    { router, policy: "random", options: ["--policy", "random"], isDeterministic: false },
  ]),
  { router: "vllm-router", policy: "consistent_hash", options: ["--policy", "consistent_hash"], isDeterministic: true },
  {
    router: "llm-d",
    policy: "queue 2, kv 2, prefix 3",
    options: [],
    pickerConfig: picker({ "queue-scorer": 2, "kv-cache-utilization-scorer": 2, "prefix-cache-scorer": 3 }),
    isDeterministic: true,
  },
  {
    router: "llm-d",
    policy: "queue 1",
    options: [],
    pickerConfig: picker({ "queue-scorer": 1 }),
    isDeterministic: true,
  },
];

/** Programs of the field: a virtual environment of Python routers, llm-d's picker, and Envoy. */
export interface Programs {
  readonly peers: string;
  readonly picker: string;
  readonly envoy: string;
}

export interface RunningRouter {
  readonly url: string;
  readonly stop: () => void;
}

const START_MILLIS_MAX = 30_000;

/** Starts it before engines `HOST:PORT`, the ports all the same; rejects where it does not answer. */
export async function startRouter(
  one: RouterCase,
  programs: Programs,
  engines: readonly string[],
  folder: string,
): Promise<RunningRouter> {
  const started =
    one.router === "llm-d"
      ? await llmD(one, programs, engines, folder)
      : await byOptions(one, one.router, programs, engines);
  const began = performance.now();
  while (!(await answers(started.url))) {
    if (performance.now() - began > START_MILLIS_MAX) {
      started.stop();
      throw new Error(`${one.router}: no answer within ${START_MILLIS_MAX / 1000} s`);
    }
    await new Promise((next) => setTimeout(next, 100));
  }
  return started;
}

/** Whether the program that a case needs is there. */
export function isThere({ router }: RouterCase, { peers, picker, envoy }: Programs): boolean {
  return router === "llm-d" ? existsSync(picker) && existsSync(envoy) : peerCommand(peers, router).isThere;
}

async function byOptions(
  { options }: RouterCase,
  router: PeerProgram,
  { peers }: Programs,
  engines: readonly string[],
): Promise<RunningRouter> {
  const [port, prometheus] = [await freePort(), await freePort()];
  const launch = router === "vllm-router" ? [] : ["launch"];
  const own = router === "smg" ? ["--backend", "vllm", "--disable-tokenizer-autoload"] : [];
  const listen = ["--host", "127.0.0.1", "--port", String(port), "--prometheus-port", String(prometheus)];
  const workers = ["--worker-urls", ...engines.map((address) => `http://${address}`)];
  const program = peerCommand(peers, router);
  const args = [...program.args, ...launch, ...own, ...options, ...listen, "--log-level", "error", ...workers];
  const child = kept(spawn(program.command, args, { stdio: "ignore" }));
  return { url: `http://127.0.0.1:${port}`, stop: () => child.kill("SIGKILL") };
}

/** Its picker in standalone mode, behind Envoy as deploy/envoy.yaml has it, which shows where a request went. */
async function llmD(
  { pickerConfig }: RouterCase,
  programs: Programs,
  engines: readonly string[],
  folder: string,
): Promise<RunningRouter> {
  const [grpc, health, metrics, port] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const config = join(folder, "epp.yaml");
  writeFileSync(config, stringify(pickerConfig));
  const hosts = engines.map((address) => address.split(":")[0]!);
  const pods = await startPodList(folder, hosts);
  const target = engines[0]!.split(":")[1];
  const ports = [`--grpc-port=${grpc}`, `--grpc-health-port=${health}`, `--metrics-port=${metrics}`];
  const selected = ["--endpoint-selector=app=vllm", `--endpoint-target-ports=${target}`, "--pool-namespace=sample"];
  const others = ["--secure-serving=false", "--metrics-endpoint-auth=false", `--config-file=${config}`];
  const env = { ...process.env, KUBECONFIG: pods.file, NAMESPACE: "sample", POD_NAME: "epp-7d9f8b6c5-abcde" };
  const epp = kept(spawn(programs.picker, [...ports, ...selected, ...others], { stdio: "ignore", env }));
  const file = join(folder, "envoy.yaml");
  writeFileSync(file, envoyConfig(port, grpc, engines));
  const envoy = kept(
    spawn(programs.envoy, ["-c", file, "--base-id", String(port), "--concurrency", "1"], { stdio: "ignore" }),
  );
  const stop = (): void => {
    envoy.kill("SIGKILL");
    epp.kill("SIGKILL");
    pods.close();
  };
  return { url: `http://127.0.0.1:${port}`, stop };
}

/** deploy/envoy.yaml with these ports and engines. */
function envoyConfig(port: number, grpc: number, engines: readonly string[]): string {
  const text = readFileSync(new URL("../../deploy/envoy.yaml", import.meta.url), "utf8");
  const address = (host: string, port: number): object => ({ socket_address: { address: host, port_value: port } });
  interface Cluster {
    readonly load_assignment: { endpoints: unknown };
  }
  interface Envoy {
    static_resources: {
      listeners: { address: object; filter_chains: { filters: { typed_config: { route_config: object } }[] }[] }[];
      clusters: Cluster[];
    };
  }
  const config = parse(text) as Envoy;
  const { listeners, clusters } = config.static_resources;
  const [listener] = listeners as [Envoy["static_resources"]["listeners"][0]];
  const [pickers, fleet] = clusters as [Cluster, Cluster];
  listener.address = address("127.0.0.1", port);
  const { typed_config: manager } = listener.filter_chains[0]!.filters[0]!;
  const shown = { header: { key: "x-envoy-upstream-host", value: "%UPSTREAM_REMOTE_ADDRESS%" } };
  manager.route_config = { ...manager.route_config, response_headers_to_add: [shown] };
  const among = (all: readonly object[]): object[] => [
    { lb_endpoints: all.map((one) => ({ endpoint: { address: one } })) },
  ];
  pickers.load_assignment.endpoints = among([address("127.0.0.1", grpc)]);
  fleet.load_assignment.endpoints = among(
    engines.map((engine) => address(engine.split(":")[0]!, Number(engine.split(":")[1]))),
  );
  return stringify(config);
}

async function answers(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "emulated", max_tokens: 1, messages: [{ role: "user", content: "hello" }] }),
      signal: AbortSignal.timeout(2_000),
    });
    await answer.text();
    return answer.ok;
  } catch {
    return false;
  }
}
