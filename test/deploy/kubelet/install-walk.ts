import { spawn } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { CLUSTER_FOLDER, RealCluster } from "../../live/discovery/real-cluster.ts";
import { commandsOf, printedBlocks } from "../../printed-commands.ts";
import { ClusterClient } from "./cluster-client.ts";
import { HandKubelet } from "./hand-kubelet.ts";
import { POD_ADDRESSES, SERVICE_ADDRESSES } from "./private-network.ts";

/** One way from an empty namespace to an answer: each command that is printed, in order, and what came of it. */
export interface Walk {
  readonly commands: readonly { readonly command: string; readonly code: number | null; readonly output: string }[];
  /** What the pods ran. */
  readonly pods: readonly string[];
  readonly millis: number;
}

export type Way = "kustomize" | "helm";

const ROOT = resolve(import.meta.dirname, "../../..");
const HELM = process.env["TEST_HELM"] ?? "";
const IMAGES: Readonly<Record<string, readonly string[]>> = {
  "gnomon:0.1.0": [process.execPath, join(ROOT, "bin/gnomon.js")],
  "redis:8": ["redis-server", "--bind", "0.0.0.0"],
};

/** The commands of k8s/README.md for a way; building an image is not among them. */
export function commandsOfWay(way: Way): string[] {
  const blocks = printedBlocks(readFileSync(join(ROOT, "k8s/README.md"), "utf8"));
  const shell = blocks.filter(({ language }) => language === "sh").map(({ text }) => commandsOf(text));
  const holding = (part: string): string[] => shell.find((commands) => commands.some((one) => one.includes(part)))!;
  const begin = way === "helm" ? holding("helm install") : holding("apply -k");
  const after = way === "helm" ? holding("helm upgrade") : [];
  const commands = [...begin, ...holding("create deployment vllm"), ...holding("port-forward service"), ...after];
  return commands.filter((command) => !command.startsWith("docker "));
}

/** The programs that commands name: kubectl and helm with the cluster's credential; a forward to a port goes through the service. */
function tools(folder: string, kubeconfig: string): string {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  const kubectl = join(CLUSTER_FOLDER, "bin/kubectl");
  const forward = join(import.meta.dirname, "port-forward.ts");
  const write = (name: string, script: string): void => {
    writeFileSync(join(bin, name), `#!/bin/sh\nexport KUBECONFIG=${kubeconfig}\n${script}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  write(
    "kubectl",
    `case "$*" in *port-forward*) exec ${process.execPath} ${forward} "$@" ;; esac\nexec ${kubectl} "$@"`,
  );
  write("helm", `exec ${HELM} "$@"`);
  return bin;
}

async function walk(way: Way): Promise<Walk> {
  // The server looks for a way out, which this network has not.
  process.env["APISERVER_FLAGS"] = `--advertise-address ${SERVICE_ADDRESSES.at(-1)!}`;
  const cluster = new RealCluster();
  await cluster.start();
  const folder = process.env["WALK_FOLDER"]!;
  const kubelet = new HandKubelet({
    client: new ClusterClient(cluster.folder, cluster.port),
    namespaces: ["infer"],
    apiServerPort: cluster.port,
    folder,
    entrypointOf: (image) => IMAGES[image],
    addressesOfPods: POD_ADDRESSES,
    addressesOfServices: SERVICE_ADDRESSES,
  });
  await kubelet.start();
  const from = performance.now();
  const bin = tools(folder, join(cluster.folder, "admin.kubeconfig"));
  const commands = [];
  try {
    for (const command of commandsOfWay(way)) {
      process.stderr.write(`$ ${command}\n`);
      const ran = await run(command, { ...process.env, PATH: `${bin}:${process.env["PATH"]}`, HOME: folder });
      commands.push({ command, ...ran });
      if (ran.code !== 0) break;
    }
  } finally {
    await kubelet.stop();
    cluster.stop();
  }
  return { commands, pods: kubelet.commands, millis: performance.now() - from };
}

/** What is sent to the background goes on; its output does not hold the command. */
async function run(command: string, env: NodeJS.ProcessEnv): Promise<{ code: number | null; output: string }> {
  const behind = command.trimEnd().endsWith("&");
  const child = spawn("bash", ["-c", command], { cwd: ROOT, env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output += text));
  const code = await new Promise<number | null>((done) => child.once(behind ? "exit" : "close", done));
  return { code, output };
}

if (import.meta.main)
  process.stdout.write(`\n${JSON.stringify(await walk(process.argv[2] as Way))}\n`, () => process.exit());
