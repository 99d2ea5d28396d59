import { type Fields, isFields } from "../base/fields.ts";
import type { ServedModel } from "./endpoint-directory.ts";
import { askEngine, type EngineRequestOptions } from "./engine-request.ts";

/** One call of engines' administration, as it went. */
export interface AdministrationDone {
  /** Without its query. */
  readonly path: string;
  readonly body: Buffer | undefined;
  /** URLs of the servers that did it. */
  readonly servers: readonly string[];
}

/** One adapter, to be loaded at servers of the same base models. */
interface AdapterLoad {
  readonly name: string;
  readonly body: Buffer;
  readonly bases: ReadonlySet<string>;
}

/** A server as it is asked. */
type LoadingServer = Pick<EngineRequestOptions, "dispatcher" | "apiKey" | "stop"> & { readonly url: string };

export interface AdapterLoadCounts {
  /** Adapters that a server got as it joined, and that it would not load. */
  loaded: number;
  failed: number;
  /** Loads that were not remembered, there being too many. */
  forgotten: number;
}

/** What one vLLM holds in its CPU's memory is far less. */
const ADAPTERS_MAX = 1_024;
/** An adapter may have to be fetched first. */
const LOAD_MILLIS_MAX = 60_000;
const ANSWER_BYTES_MAX = 65_536;
const NAME_SHOWN_MAX = 200;
const LOAD_PATH = "/v1/load_lora_adapter";
const UNLOAD_PATH = "/v1/unload_lora_adapter";

/**
 * Adapters that were loaded through this gateway and not unloaded since, so that a server which joins later gets them too.
 * A gateway that starts again knows none: what its engines list is served, and nothing is loaded anywhere.
 */
export class AdapterLoads {
  readonly counts: AdapterLoadCounts = { loaded: 0, failed: 0, forgotten: 0 };
  readonly #loads = new Map<string, AdapterLoad>();

  /** A load or unload that succeeded at servers which serve these models; true for one of both. */
  note({ path, body }: AdministrationDone, models: readonly ServedModel[]): boolean {
    if (path !== LOAD_PATH && path !== UNLOAD_PATH) return false;
    const name = nameOf(body);
    if (name === undefined || body === undefined) return true;
    if (path === UNLOAD_PATH) this.#loads.delete(name);
    else if (this.#loads.size >= ADAPTERS_MAX && !this.#loads.has(name)) this.counts.forgotten++;
    else this.#loads.set(name, { name, body, bases: new Set(basesOf(models)) });
    return true;
  }

  /** Loads at a server what it lacks of those for the models that it serves; true if there were any. */
  async loadAt(
    server: LoadingServer,
    models: readonly ServedModel[],
    failed: (detail: string) => void,
  ): Promise<boolean> {
    const lacked = this.#lackedBy(models);
    const bounds = { timeoutMillis: LOAD_MILLIS_MAX, bytesMax: ANSWER_BYTES_MAX };
    for (const { name, body } of lacked) {
      const answer = await askEngine(server.url + LOAD_PATH, { ...server, ...bounds, body });
      this.counts[answer.kind === "answered" ? "loaded" : "failed"]++;
      if (answer.kind === "failed") failed(`${name.slice(0, NAME_SHOWN_MAX)}: ${answer.detail}`);
    }
    return lacked.length > 0;
  }

  #lackedBy(models: readonly ServedModel[]): AdapterLoad[] {
    const listed = new Set(models.map(({ id }) => id));
    return [...this.#loads.values()].filter(
      ({ name, bases }) => !listed.has(name) && basesOf(models).some((base) => bases.has(base)),
    );
  }
}

/** vLLM lists an adapter with the model that it is of as its parent. */
function basesOf(models: readonly ServedModel[]): string[] {
  return models.flatMap(({ id, parent }) => (typeof parent === "string" ? [] : [id]));
}

function nameOf(body: Buffer | undefined): string | undefined {
  const name = fieldsOf(body)?.["lora_name"];
  return typeof name === "string" && name !== "" ? name : undefined;
}

function fieldsOf(body: Buffer | undefined): Fields | undefined {
  try {
    const fields: unknown = JSON.parse(body?.toString() ?? "");
    return isFields(fields) ? fields : undefined;
  } catch {
    return undefined;
  }
}
