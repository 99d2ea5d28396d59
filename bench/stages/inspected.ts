import type { Profiler } from "node:inspector";

/** A process that was started with --inspect, seen from outside: its profile, and expressions that it evaluates. */
export class Inspected {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (result: Record<string, unknown>) => void>();
  #sent = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => {
      const { id, result } = JSON.parse(String(data)) as { id?: number; result?: Record<string, unknown> };
      if (id === undefined) return;
      this.#waiting.get(id)?.(result ?? {});
      this.#waiting.delete(id);
    });
  }

  static async open(port: number): Promise<Inspected> {
    const targets = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as {
      webSocketDebuggerUrl: string;
    }[];
    const socket = new WebSocket(targets[0]!.webSocketDebuggerUrl);
    await new Promise((resolve, reject) => {
      socket.addEventListener("open", resolve);
      socket.addEventListener("error", () => reject(new Error(`no inspector at port ${port}`)));
    });
    return new Inspected(socket);
  }

  async startProfile(): Promise<void> {
    await this.#post("Profiler.enable");
    await this.#post("Profiler.setSamplingInterval", { interval: 250 });
    await this.#post("Profiler.start");
  }

  async stopProfile(): Promise<Profiler.Profile> {
    const { profile } = await this.#post("Profiler.stop");
    await this.#post("Profiler.disable");
    return profile as Profiler.Profile;
  }

  /** Bytes that its main thread has allocated in V8's heap since it started. */
  allocatedBytes(): Promise<number> {
    return this.#number('process.getBuiltinModule("node:v8").getHeapStatistics().total_allocated_bytes');
  }

  /** Bytes in use in V8's heap of its main thread. */
  heapUsedBytes(): Promise<number> {
    return this.#number("process.memoryUsage().heapUsed");
  }

  /** Bytes in its main thread's old generation, without what is too large for a page. */
  oldBytes(): Promise<number> {
    return this.#number(
      'process.getBuiltinModule("node:v8").getHeapSpaceStatistics().find((space) => space.space_name === "old_space").space_used_size',
    );
  }

  async collectGarbage(): Promise<void> {
    await this.#post("HeapProfiler.collectGarbage");
  }

  /** What keeps its event loop going, by kind. */
  async handles(): Promise<Readonly<Record<string, number>>> {
    const expression =
      "JSON.stringify(process.getActiveResourcesInfo().reduce((n, k) => ({ ...n, [k]: (n[k] ?? 0) + 1 }), {}))";
    const { result } = (await this.#post("Runtime.evaluate", { expression })) as { result: { value?: string } };
    return JSON.parse(result.value ?? "{}") as Record<string, number>;
  }

  async #number(expression: string): Promise<number> {
    const { result } = (await this.#post("Runtime.evaluate", { expression })) as { result: { value?: number } };
    return result.value ?? Number.NaN;
  }

  close(): void {
    this.#socket.close();
  }

  #post(method: string, params: object = {}): Promise<Record<string, unknown>> {
    const id = ++this.#sent;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#socket.send(JSON.stringify({ id, method, params }));
    });
  }
}
