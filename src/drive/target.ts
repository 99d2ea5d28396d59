import { Pool, type Dispatcher } from "undici";
import { isRecord } from "#trace/import/json-record.ts";

/** vLLM closes idle connections after 5 s; ours go first. */
const KEEP_ALIVE_MILLIS = 4_000;
const CONNECT_MILLIS_MAX = 10_000;
const MODELS_MILLIS_MAX = 10_000;

/** A URL under load: a pool of plain connections without limits on how long an answer takes. */
export class DriveTarget {
  readonly url: string;
  readonly #pool: Pool;
  readonly #base: string;

  constructor(url: string, connections: number) {
    const { origin, pathname } = new URL(url);
    this.url = url;
    this.#base = pathname.replace(/\/(v1\/?)?$/, "");
    this.#pool = new Pool(origin, {
      connections,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MILLIS,
      keepAliveMaxTimeout: KEEP_ALIVE_MILLIS,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: { timeout: CONNECT_MILLIS_MAX },
    });
  }

  post(path: string, headers: string[], body: Buffer, handler: Dispatcher.DispatchHandler): void {
    this.#pool.dispatch({ method: "POST", path: this.#base + path, headers, body }, handler);
  }

  /** Id of the first model that is served, or a reason why there is none. */
  async firstModel(headers: string[]): Promise<{ readonly model: string } | { readonly reason: string }> {
    try {
      const signal = AbortSignal.timeout(MODELS_MILLIS_MAX);
      const answer = await this.#pool.request({ method: "GET", path: `${this.#base}/v1/models`, headers, signal });
      const body: unknown = await answer.body.json();
      if (answer.statusCode !== 200) return { reason: `/v1/models answered ${answer.statusCode}` };
      const models: readonly unknown[] = isRecord(body) && Array.isArray(body["data"]) ? body["data"] : [];
      const first = models.find(isRecord);
      return typeof first?.["id"] === "string" ? { model: first["id"] } : { reason: "/v1/models lists no model" };
    } catch (error) {
      return { reason: `/v1/models: ${error instanceof Error ? error.message : String(error)}` };
    }
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}
