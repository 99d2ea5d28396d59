import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import type { RolloutsView, RolloutView } from "#live/admin/rollout-view.ts";
import { kept } from "../children.ts";

const MAIN = join(import.meta.dirname, "../../src/main.ts");
const TOKEN = "bench";
const WAIT_MILLIS_MAX = 30_000;
const POLL_MILLIS = 20;

/** Emulated engines in a process of their own, so that they outlive a gateway. */
export async function startEngines(count: number, engine: string): Promise<readonly string[]> {
  const options = ["--count", String(count), "--port-base", "0", "--engine", engine];
  const child = kept(spawn(process.execPath, [MAIN, "emulate", ...options], { stdio: ["ignore", "pipe", "inherit"] }));
  let text = "";
  for await (const chunk of child.stdout.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    text += String(chunk);
    const urls = text.match(/http:\/\/127\.0\.0\.1:\d+/g) ?? [];
    if (text.includes("\n") && urls.length === count) return urls;
  }
  throw new Error(`the engines ended: ${text}`);
}

/** A gateway that can be killed and started again over the same folders. */
export class DrivenGateway {
  readonly #file: string;
  readonly #options: readonly string[];
  #child: ReturnType<typeof spawn> | undefined;
  url = "";
  adminUrl = "";

  constructor(folder: string, config: object) {
    this.#file = join(folder, "gateway.yaml");
    writeFileSync(this.#file, stringify({ admin: { tokenEnv: "BENCH_TOKEN" }, log: { level: "error" }, ...config }));
    this.#options = [MAIN, "serve", "--config", this.#file];
  }

  async start(): Promise<void> {
    const env = { ...process.env, BENCH_TOKEN: TOKEN };
    const child = kept(spawn(process.execPath, this.#options, { stdio: ["ignore", "pipe", "inherit"], env }));
    this.#child = child;
    let text = "";
    for await (const chunk of child.stdout.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
      text += String(chunk);
      const [, url] = /"url":"([^"]+)"/.exec(text) ?? [];
      if (url === undefined || !text.includes('"event":"ready"')) continue;
      child.stdout.resume();
      this.url = url;
      this.adminUrl = /"adminUrl":"([^"]+)"/.exec(text)?.[1] ?? "";
      return;
    }
    throw new Error(`the gateway ended before it was ready: ${text}`);
  }

  /** As an operator ends it, or as nobody should. */
  async end(signal: "SIGINT" | "SIGKILL" = "SIGINT"): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    child.kill(signal);
    await once(child, "exit");
  }

  async admin(method: "GET" | "POST", path: string, body?: object): Promise<unknown> {
    const answer = await fetch(`${this.adminUrl}/gnomon/admin${path}`, {
      method,
      headers: { authorization: `Bearer ${TOKEN}` },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return JSON.parse(text) as unknown;
  }

  async rollout(name: string): Promise<RolloutView> {
    const found = await this.#found(name);
    if (found === undefined) throw new Error(`rollout ${name} is not there`);
    return found;
  }

  async #found(name: string): Promise<RolloutView | undefined> {
    const { rollouts } = (await this.admin("GET", "/rollout")) as RolloutsView;
    return rollouts.find((one) => one.name === name);
  }

  /** The rollout once something holds of it. */
  async until(
    name: string,
    what: string,
    holds: (rollout: RolloutView) => boolean,
    millisMax = WAIT_MILLIS_MAX,
  ): Promise<RolloutView> {
    const since = performance.now();
    for (;;) {
      const rollout = await this.#found(name);
      if (rollout !== undefined && holds(rollout)) return rollout;
      if (performance.now() - since > millisMax) throw new Error(`${name}: waited in vain for ${what}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MILLIS));
    }
  }
}
