import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { KubeContext } from "#live/discovery/kubeconfig.ts";

interface FakeObject {
  readonly metadata: {
    readonly name: string;
    readonly uid?: string;
    resourceVersion?: string;
    readonly [key: string]: unknown;
  };
  readonly [key: string]: unknown;
}

interface Collection {
  readonly objects: Map<string, FakeObject>;
  readonly watchers: Set<ServerResponse>;
  /** What happened, for watches that go on from a version. */
  readonly history: { readonly version: number; readonly line: string }[];
}

/** An API server as far as list and watch of collections go, with resource versions and failures on demand. */
export class FakeApiServer {
  readonly kubeContext: KubeContext;
  /** "list PATH?labelSelector" and "watch PATH@version", in order. */
  readonly seen: string[] = [];
  /** The same with all that was asked for. */
  readonly queries: { readonly path: string; readonly watch: boolean; readonly search: URLSearchParams }[] = [];
  /** Paths that are answered with a status of their own. */
  readonly denied = new Map<string, number>();
  /** While set, every request is answered with this status. */
  status: number | undefined;
  readonly #server: Server;
  readonly #collections = new Map<string, Collection>();
  #version = 100;

  private constructor(server: Server) {
    this.#server = server;
    const { port } = server.address() as AddressInfo;
    this.kubeContext = { cluster: { server: `http://127.0.0.1:${port}` }, user: { token: "cluster-secret" } };
    server.on("request", (request: IncomingMessage, response: ServerResponse) => this.#answer(request, response));
  }

  static async start(): Promise<FakeApiServer> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new FakeApiServer(server);
  }

  /** Adds or changes an object of a collection and tells its watchers. */
  put(path: string, object: FakeObject): void {
    const { objects } = this.#collection(path);
    const phase = objects.has(object.metadata.name) ? "MODIFIED" : "ADDED";
    object.metadata.resourceVersion = String(++this.#version);
    objects.set(object.metadata.name, object);
    this.#happened(path, phase, object);
  }

  delete(path: string, name: string): void {
    const { objects } = this.#collection(path);
    const object = objects.get(name)!;
    object.metadata.resourceVersion = String(++this.#version);
    objects.delete(name);
    this.#happened(path, "DELETED", object);
  }

  /** Changes a collection behind the watchers' backs. */
  forget(path: string, name: string): void {
    this.#collection(path).objects.delete(name);
    this.#version++;
  }

  event(path: string, type: string, object: object): void {
    this.write(path, Buffer.from(`${JSON.stringify({ type, object })}\n`));
  }

  /** Bytes of events, whole or not, to all who watch. */
  write(path: string, bytes: Buffer): void {
    for (const watcher of this.#collection(path).watchers) watcher.write(bytes);
  }

  #happened(path: string, type: string, object: object): void {
    const line = `${JSON.stringify({ type, object })}\n`;
    this.#collection(path).history.push({ version: this.#version, line });
    this.event(path, type, object);
  }

  /** Ends all watches of a collection, cleanly or not. */
  hangUp(path: string, cleanly: boolean): void {
    for (const watcher of this.#collection(path).watchers) {
      if (cleanly) watcher.end();
      else watcher.destroy();
    }
  }

  watchers(path: string): number {
    return this.#collection(path).watchers.size;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #collection(path: string): Collection {
    let collection = this.#collections.get(path);
    if (collection === undefined) {
      collection = { objects: new Map(), watchers: new Set(), history: [] };
      this.#collections.set(path, collection);
    }
    return collection;
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url!, "http://fake");
    const watching = url.searchParams.get("watch") === "true";
    const version = url.searchParams.get("resourceVersion");
    const selector = url.searchParams.get("labelSelector");
    this.seen.push(watching ? `watch ${url.pathname}@${version}` : `list ${url.pathname}?${selector}`);
    const authorized = request.headers.authorization === "Bearer cluster-secret";
    this.queries.push({ path: url.pathname, watch: watching, search: url.searchParams });
    const status = this.status ?? this.denied.get(url.pathname) ?? (authorized ? undefined : 401);
    if (status !== undefined) {
      response.writeHead(status, { "content-type": "application/json" }).end('{"kind":"Status"}');
      return;
    }
    const { objects, watchers, history } = this.#collection(url.pathname);
    response.writeHead(200, { "content-type": "application/json" });
    if (watching) {
      response.flushHeaders();
      watchers.add(response);
      response.on("close", () => watchers.delete(response));
      for (const event of history) if (event.version > Number(version)) response.write(event.line);
    } else {
      const from = Number(url.searchParams.get("continue") ?? 0);
      const to = from + Number(url.searchParams.get("limit") ?? Infinity);
      const next = to < objects.size ? { continue: String(to) } : {};
      const metadata = { resourceVersion: String(this.#version), ...next };
      const items = [...objects.values()].slice(from, to);
      response.end(JSON.stringify({ kind: "List", apiVersion: "v1", metadata, items }));
    }
  }
}
