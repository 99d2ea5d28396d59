import { type Dispatcher, request } from "undici";

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
export async function askEngine(url: string, options: EngineRequestOptions): Promise<EngineAnswer> {
  const { stop, dispatcher, apiKey } = options;
  const controller = new AbortController();
  let timedOut = false;
  const onStop = () => controller.abort();
  const timer = setTimeout(() => {
    timedOut = true;
    controller.abort();
  }, options.timeoutMillis);
  stop.addEventListener("abort", onStop, { once: true });
  if (stop.aborted) onStop();
  try {
    const headers: Record<string, string> = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
    if (options.body !== undefined) headers["content-type"] = "application/json";
    const sent = options.body === undefined ? {} : ({ method: "POST", body: options.body } as const);
    const { statusCode, body } = await request(url, { dispatcher, headers, signal: controller.signal, ...sent });
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > options.bytesMax) return failed("too-large", `the answer is above ${options.bytesMax} bytes`);
      chunks.push(chunk);
    }
    if (statusCode === 401 || statusCode === 403)
      return failed("status", `answered ${statusCode}: it wants another API key`);
    if (statusCode !== 200) return failed("status", `answered ${statusCode}`);
    return { kind: "answered", text: Buffer.concat(chunks).toString("utf8") };
  } catch (error) {
    if (stop.aborted) return failed("stopped", "stopped");
    if (timedOut) return failed("timeout", `no complete answer in ${options.timeoutMillis} ms`);
    return faultOf(error);
  } finally {
    clearTimeout(timer);
    stop.removeEventListener("abort", onStop);
  }
}

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

function faultOf(error: unknown): EngineAnswer {
  const code = codeOf(error);
  if (code === "HTTPParserError") return failed("garbage", "the answer is not HTTP");
  if (code === "EMFILE" || code === "ENFILE")
    return failed("no-files", `this gateway can open no connection (${code})`);
  if (ABSENT_CODES.has(code)) return failed("connect", `cannot connect (${code})`);
  return failed("cut", `the connection broke (${code})`);
}

/** The system's or undici's code, else the kind of error. Messages are left out: they may quote what was received. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  if ("code" in error && typeof error.code === "string") return error.code;
  return error.cause === undefined ? error.name : codeOf(error.cause);
}
