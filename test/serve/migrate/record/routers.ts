import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { kept } from "../../../../bench/children.ts";
import { freePort } from "../../../../bench/free-port.ts";
import { pinned } from "../../../../bench/gateway-process.ts";
import { engineHost } from "./held-engines.ts";
import { startPodList } from "./pod-list.ts";

const PAGE = join(import.meta.dirname, "../../../../docs/migrate.md");
const MASTER_KEY = "sk-sample";

export interface RunningRouter {
  readonly port: number;
  /** Of each request, beside content type and session. */
  readonly headers: Readonly<Record<string, string>>;
}

/** `command` of a router, by the configuration of theirs that the page prints, with our engines and ports in it. */
export interface RouterStart {
  readonly command: string;
  readonly engines: readonly number[];
  readonly scratch: string;
}

export const ROUTERS: Readonly<Record<string, (start: RouterStart) => Promise<RunningRouter>>> = {
  nginx: startNginx,
  LiteLLM: startLiteLlm,
  SMG: byCommandLine,
  "production-stack": byCommandLine,
  "llm-d": startLlmD,
};

/** The page's block of theirs, without its first line. */
function theirs(name: string, engines: readonly number[]): string {
  const begin = `# theirs: ${name}\n`;
  const page = readFileSync(PAGE, "utf8");
  const from = page.indexOf(begin) + begin.length;
  const text = page.slice(from, page.indexOf("```", from));
  return text.replace(
    /10\.0\.0\.(\d+):8000/g,
    (_, last: string) => `${engineHost(Number(last) - 5)}:${engines[Number(last) - 5]}`,
  );
}

async function startNginx({ command, engines, scratch }: RouterStart): Promise<RunningRouter> {
  const port = await freePort();
  const file = join(scratch, "nginx.conf");
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${scratch}/${name};`,
  );
  const http = theirs("nginx", engines).replace(/listen \d+;/, `listen 127.0.0.1:${port};`);
  writeFileSync(
    file,
    `worker_processes 1; daemon off; pid ${scratch}/nginx.pid; error_log ${scratch}/nginx.log;
events {} http { access_log off; ${temporary.join(" ")}\n${http} }`,
  );
  kept(spawn(command, ["-c", file], { stdio: "inherit" }));
  return { port, headers: {} };
}

async function startLiteLlm({ command, engines, scratch }: RouterStart): Promise<RunningRouter> {
  const port = await freePort();
  const file = join(scratch, "litellm.yaml");
  writeFileSync(file, theirs("LiteLLM", engines));
  const env = { ...process.env, LITELLM_MASTER_KEY: MASTER_KEY, LITELLM_LOCAL_MODEL_COST_MAP: "True" };
  kept(spawn(command, ["--config", file, "--host", "127.0.0.1", "--port", String(port)], { stdio: "ignore", env }));
  return { port, headers: { authorization: `Bearer ${MASTER_KEY}` } };
}

/** SMG and production-stack, whose command line is the configuration. */
async function byCommandLine(start: RouterStart): Promise<RunningRouter> {
  const port = await freePort();
  const name = start.command.endsWith("vllm-router") ? "production-stack" : "SMG";
  const words = theirs(name, start.engines)
    .replaceAll("\\\n", " ")
    .replace(/--port \d+/, `--port ${port}`)
    .replace("0.0.0.0", "127.0.0.1")
    .trim()
    .split(/\s+/)
    .slice(1);
  const own = name === "SMG" ? ["--prometheus-port", String(await freePort()), "--log-level", "warn"] : [];
  const env = { ...process.env, HF_HUB_OFFLINE: "1" };
  kept(spawn(start.command, [...words, ...own], { stdio: ["ignore", "ignore", "inherit"], env }));
  return { port, headers: {} };
}

async function startLlmD(start: RouterStart): Promise<RunningRouter> {
  const { port } = await startEpp(start);
  return { port, headers: {} };
}

/** How llm-d's picker is run where that is not as its sample is recorded. */
interface EppSettings {
  readonly tls?: boolean;
  /** The one core that it has. */
  readonly core?: number;
}

export async function startEpp(
  { command, engines, scratch }: RouterStart,
  { tls = false, core }: EppSettings = {},
): Promise<{ readonly port: number; readonly process: ChildProcess }> {
  const [port, health, metrics] = [await freePort(), await freePort(), await freePort()];
  const config = join(scratch, "epp.yaml");
  writeFileSync(config, theirs("llm-d", engines));
  const { file } = await startPodList(
    scratch,
    engines.map((_, i) => engineHost(i)),
  );
  const ports = [`--grpc-port=${port}`, `--grpc-health-port=${health}`, `--metrics-port=${metrics}`];
  const pods = ["--endpoint-selector=app=vllm", `--endpoint-target-ports=${engines[0]}`, "--pool-namespace=sample"];
  // As its chart runs it.
  const chart = ["--tracing=false", "--zap-encoder=json"];
  const flags = [...chart, `--secure-serving=${tls}`, "--metrics-endpoint-auth=false", `--config-file=${config}`];
  const env = { ...process.env, KUBECONFIG: file, NAMESPACE: "sample", POD_NAME: "epp-7d9f8b6c5-abcde" };
  const all = [...ports, ...pods, ...flags];
  const [program, args] = core === undefined ? [command, all] : pinned(core, command, all);
  const errors = core === undefined ? "inherit" : "ignore";
  return { port, process: kept(spawn(program, args, { stdio: ["ignore", "ignore", errors], env })) };
}
