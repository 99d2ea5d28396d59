import { readFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { join } from "node:path";

const TIME_LIMIT_MILLIS = 10_000;

/** Asks a control plane as its administrator, without a kubectl for each question. */
export class ClusterClient {
  readonly #agent: Agent;
  readonly #port: number;

  /** `folder` is what up.sh made. */
  constructor(folder: string, port: number) {
    const file = (name: string): Buffer => readFileSync(join(folder, name));
    this.#port = port;
    this.#agent = new Agent({ ca: file("ca.crt"), cert: file("admin.crt"), key: file("admin.key"), keepAlive: true });
  }

  /** The answer; undefined where there is no such object. Throws on any other failure. */
  async ask<T>(method: string, path: string, body?: object, type = "application/json"): Promise<T | undefined> {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers = text === undefined ? {} : { "content-type": type, "content-length": Buffer.byteLength(text) };
    return new Promise((resolve, reject) => {
      const signal = AbortSignal.timeout(TIME_LIMIT_MILLIS);
      const options = { method, path, headers, signal, agent: this.#agent, host: "127.0.0.1", port: this.#port };
      const sent = request(options, (response) => {
        let answer = "";
        response.setEncoding("utf8").on("data", (part: string) => (answer += part));
        response.on("end", () => {
          const status = response.statusCode ?? 0;
          if (status === 404) resolve(undefined);
          else if (status >= 300) reject(new Error(`${method} ${path}: ${status} ${answer}`));
          else resolve(JSON.parse(answer) as T);
        });
      });
      sent.on("error", reject).end(text);
    });
  }

  merge(path: string, patch: object): Promise<unknown> {
    return this.ask("PATCH", path, patch, "application/merge-patch+json");
  }

  async list<T>(path: string): Promise<readonly T[]> {
    return (await this.ask<{ items: readonly T[] }>("GET", path))?.items ?? [];
  }
}
