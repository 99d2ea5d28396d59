import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { kept } from "../../../../bench/children.ts";
import { freePort } from "../../../../bench/free-port.ts";

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
  return text.replace(/10\.0\.0\.(\d+):8000/g, (_, last: string) => `127.0.0.1:${engines[Number(last) - 5]}`);
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

async function startLlmD({ command, engines, scratch }: RouterStart): Promise<RunningRouter> {
  const [port, health, metrics] = [await freePort(), await freePort(), await freePort()];
  const [endpoints, config] = [join(scratch, "endpoints.yaml"), join(scratch, "epp.yaml")];
  const listed = engines.map((engine, i) => ({ name: `engine-${i}`, address: "127.0.0.1", port: String(engine) }));
  writeFileSync(endpoints, stringify({ endpoints: listed }));
  const file = parse(theirs("llm-d", engines)) as { plugins: object[] };
  // The page's file reads an InferencePool; this one reads a list, and is the same otherwise.
  const plugins = [
    { type: "file-discovery", parameters: { path: endpoints, watchFile: false } },
    { type: "metrics-data-source" },
    { type: "core-metrics-extractor" },
    ...file.plugins,
  ];
  const sources = [{ pluginRef: "metrics-data-source", extractors: [{ pluginRef: "core-metrics-extractor" }] }];
  const dataLayer = { injectDefaults: false, discovery: { pluginRef: "file-discovery" }, sources };
  writeFileSync(config, stringify({ ...file, plugins, dataLayer }));
  const ports = [`--grpc-port=${port}`, `--grpc-health-port=${health}`, `--metrics-port=${metrics}`];
  const flags = ["--secure-serving=false", "--pool-name=sample", "--pool-namespace=sample", `--config-file=${config}`];
  kept(spawn(command, [...ports, ...flags], { stdio: ["ignore", "ignore", "inherit"] }));
  return { port, headers: {} };
}
