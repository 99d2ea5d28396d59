import type { Dispatcher } from "undici";

/**
 * Why an engine did not answer a question of ours. Only "connect" means that nobody is there; "no-files" means that this
 * process may open no connection, which shows nothing of the engine.
 */
export type RequestFault = "connect" | "timeout" | "cut" | "status" | "too-large" | "garbage" | "no-files" | "stopped";

export type EngineAnswer =
  | { readonly kind: "answered"; readonly text: string }
  | { readonly kind: "failed"; readonly fault: RequestFault; readonly detail: string };

export interface EngineRequestOptions {
  readonly dispatcher: Dispatcher;
  /** Sent as a bearer token where there is one. */
  readonly apiKey: string | undefined;
  readonly timeoutMillis: number;
  readonly bytesMax: number;
  readonly stop: AbortSignal;
  /** JSON that it gets; it is asked by GET without. */
  readonly body?: Buffer;
}

/** A small text by GET, or by POST where it gets something, with a bound on its time and size. Redirects are not followed; only 200 is an answer. */
export function askEngine(url: string, options: EngineRequestOptions): Promise<EngineAnswer> {
  return new Promise((resolve) => void new EngineRequest(url, options, resolve));
}

/**
 * One question and what comes of it. Undici's `request` would do; but engines are asked every second, each by streams,
 * signals and iterators that do nothing for a page of two reads, and that was two thirds of what a scrape costs.
 */
class EngineRequest implements Dispatcher.DispatchHandler {
  readonly #options: EngineRequestOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #status = 0;
  #controller: Dispatcher.DispatchController | undefined;
  /** Undefined once it is answered. */
  #resolve: ((answer: EngineAnswer) => void) | undefined;

  constructor(url: string, options: EngineRequestOptions, resolve: (answer: EngineAnswer) => void) {
    const { stop, timeoutMillis } = options;
    this.#options = options;
    this.#resolve = resolve;
    this.#timer = setTimeout(this.#timedOut, timeoutMillis);
    stop.addEventListener("abort", this.#stopped);
    if (stop.aborted) this.#stopped();
    else this.#ask(url, options);
  }

  #ask(url: string, { dispatcher, apiKey, body }: EngineRequestOptions): void {
    const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
    if (body !== undefined) headers["content-type"] = "application/json";
    const slash = url.indexOf("/", url.indexOf("//") + 2);
    const [origin, path] = slash < 0 ? [url, "/"] : [url.slice(0, slash), url.slice(slash)];
    const sent = body === undefined ? ({ method: "GET" } as const) : ({ method: "POST", body } as const);
    try {
      dispatcher.dispatch({ origin, path, headers, ...sent }, this);
    } catch (error) {
      this.#end(faultOf(error));
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#resolve === undefined) controller.abort(GIVEN_UP);
    else this.#controller = controller;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.#status = status;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    const { bytesMax } = this.#options;
    if (this.#bytes > bytesMax) this.#giveUp(failed("too-large", `the answer is above ${bytesMax} bytes`));
    else this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    this.#end(this.#answer());
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#end(faultOf(error));
  }

  #answer(): EngineAnswer {
    const [first] = this.#chunks;
    const status = this.#status;
    if (status === 401 || status === 403) return failed("status", `answered ${status}: it wants another API key`);
    if (status !== 200) return failed("status", `answered ${status}`);
    const whole = this.#chunks.length === 1 ? first! : Buffer.concat(this.#chunks, this.#bytes);
    return { kind: "answered", text: whole.toString("utf8") };
  }

  readonly #timedOut = (): void =>
    this.#giveUp(failed("timeout", `no complete answer in ${this.#options.timeoutMillis} ms`));

  readonly #stopped = (): void => this.#giveUp(failed("stopped", "stopped"));

  #giveUp(answer: EngineAnswer): void {
    if (this.#end(answer)) this.#controller?.abort(GIVEN_UP);
  }

  /** False where it was answered before. */
  #end(answer: EngineAnswer): boolean {
    const resolve = this.#resolve;
    if (resolve === undefined) return false;
    this.#resolve = undefined;
    clearTimeout(this.#timer);
    this.#options.stop.removeEventListener("abort", this.#stopped);
    resolve(answer);
    return true;
  }
}

const GIVEN_UP = new Error("given up");

function failed(fault: RequestFault, detail: string): EngineAnswer {
  return { kind: "failed", fault, detail };
}

/** Nobody is there. A certificate that is not trusted is not among them. */
const ABSENT_CODES: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "EHOSTDOWN",
  "ENETUNREACH",
  "ENETDOWN",
  "ENOTFOUND",
  "EAI_AGAIN",
  "ETIMEDOUT",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** OpenSSL's and Node's words for a certificate that is over, not trusted, or another host's. */
const CERTIFICATE_CODE = /CERT|VERIFY/;

function faultOf(error: unknown): EngineAnswer {
  const code = codeOf(error);
  if (code === "HTTPParserError") return failed("garbage", "the answer is not HTTP");
  if (code === "EMFILE" || code === "ENFILE")
    return failed("no-files", `this gateway can open no connection (${code})`);
  if (ABSENT_CODES.has(code)) return failed("connect", `cannot connect (${code})`);
  if (CERTIFICATE_CODE.test(code))
    return failed("cut", `its certificate is not one that engineTls.caFile vouches for (${code})`);
  return failed("cut", `the connection broke (${code})`);
}

/** The system's or undici's code, else the kind of error. Messages are left out: they may quote what was received. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  if ("code" in error && typeof error.code === "string") return error.code;
  return error.cause === undefined ? error.name : codeOf(error.cause);
}
