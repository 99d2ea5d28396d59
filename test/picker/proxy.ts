import { type ClientDuplexStream, credentials, makeGenericClientConstructor } from "@grpc/grpc-js";
import type { TestContext } from "node:test";
import { PICKER_RULES } from "#picker/picker-rules.ts";
import { type PickerServer, type PickerOptions, startPicker } from "#picker/picker-server.ts";
import { selfSigned } from "#picker/self-signed.ts";
import { EXTERNAL_PROCESSOR, serviceOf } from "./protocol.ts";
import type { ProcessingRequest, ProcessingResponse, Struct } from "./proxy-messages.ts";
import { type Rig, type RigOptions, startRig } from "../live/gateway/rig.ts";

const Client = makeGenericClientConstructor(serviceOf("external_processor.proto", EXTERNAL_PROCESSOR), "picker");

const SELF_SIGNED = selfSigned("gnomon", new Date());
/** As the picker has it where nothing is configured. */
export const TLS: PickerOptions["tls"] = { context: SELF_SIGNED, listen: () => {} };

/** Modes of bodies, as Envoy numbers them. */
export const NONE = 0;
export const STREAMED = 1;
export const BUFFERED = 2;
export const DUPLEX = 4;

/** A picker over a real router and a proxy that speaks to it as Envoy does. */
export class ProxyRig {
  readonly rig: Rig;
  readonly picker: PickerServer;
  readonly #client: InstanceType<typeof Client>;
  readonly #open = new Set<Exchange>();

  private constructor(rig: Rig, picker: PickerServer, tls: PickerOptions["tls"]) {
    this.rig = rig;
    this.picker = picker;
    const [credential, options] =
      tls === undefined
        ? [credentials.createInsecure(), {}]
        : [credentials.createSsl(Buffer.from(SELF_SIGNED.cert)), { "grpc.ssl_target_name_override": "gnomon" }];
    this.#client = new Client(`127.0.0.1:${picker.port}`, credential, options);
  }

  static async start(
    t: TestContext,
    options: RigOptions = {},
    more: Partial<PickerOptions> = {},
    urls: readonly string[] = ["http://10.0.0.1:8000", "http://10.0.0.2:8000", "http://[fd00::3]:8000"],
  ): Promise<ProxyRig> {
    const rig = await startRig([], { urls, models: ["m"], ...options });
    const picker = await startPicker({
      gateway: rig.gateway.shared,
      routes: rig.gateway.routes,
      host: "127.0.0.1",
      port: 0,
      healthPort: undefined,
      tls: undefined,
      fallbacksMax: 0,
      rules: PICKER_RULES,
      ready: () => true,
      ...more,
    });
    const proxy = new ProxyRig(rig, picker, more.tls);
    t.after(async () => {
      for (const exchange of proxy.#open) exchange.cancel();
      await picker.stop(1_000);
      proxy.#client.close();
      await rig.close();
    });
    return proxy;
  }

  open(): Exchange {
    const call = this.#client["Process"]!.bind(this.#client) as () => ClientDuplexStream<
      ProcessingRequest,
      ProcessingResponse
    >;
    const exchange = new Exchange(call());
    this.#open.add(exchange);
    return exchange;
  }
}

export interface HeadOptions {
  readonly path?: string;
  readonly method?: string;
  readonly modes?: readonly [request: number, response: number];
  readonly endOfStream?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  /** The subset hint. */
  readonly subset?: readonly string[] | string;
}

/** One HTTP request on its stream. */
export class Exchange {
  readonly #stream: ClientDuplexStream<ProcessingRequest, ProcessingResponse>;
  readonly #answers: ProcessingResponse[] = [];
  readonly #waiting: ((answer: ProcessingResponse) => void)[] = [];
  readonly ended: Promise<void>;

  constructor(stream: ClientDuplexStream<ProcessingRequest, ProcessingResponse>) {
    this.#stream = stream;
    stream.on("data", (answer: ProcessingResponse) => {
      const next = this.#waiting.shift();
      if (next === undefined) this.#answers.push(answer);
      else next(answer);
    });
    this.ended = new Promise((resolve) => {
      stream.on("end", resolve);
      stream.on("error", () => resolve());
    });
  }

  send(message: ProcessingRequest): void {
    this.#stream.write(message);
  }

  head(options: HeadOptions = {}): void {
    const { path = "/v1/chat/completions", method = "POST", modes = [DUPLEX, DUPLEX], endOfStream = false } = options;
    const given = { ":method": method, ":path": path, ...JSON_BODY, ...options.headers };
    const headers = Object.entries(given).map(([key, value]) => ({ key, rawValue: Buffer.from(value) }));
    this.send({
      requestHeaders: { headers: { headers }, endOfStream },
      protocolConfig: { requestBodyMode: modes[0], responseBodyMode: modes[1] },
      ...(options.subset !== undefined && {
        metadataContext: { filterMetadata: { "envoy.lb.subset_hint": hint(options.subset) } },
      }),
    });
  }

  body(body: string | Buffer, endOfStream = true): void {
    this.send({ requestBody: { body: Buffer.from(body), endOfStream } });
  }

  /** The head of a response, served where `served` states. */
  response(status: number, type = "application/json", served?: string, endOfStream = false): void {
    const headers = Object.entries({ ":status": String(status), "content-type": type }).map(([key, value]) => ({
      key,
      rawValue: Buffer.from(value),
    }));
    const fields = { "x-gateway-destination-endpoint-served": { stringValue: served ?? "" } };
    this.send({
      responseHeaders: { headers: { headers }, endOfStream },
      ...(served !== undefined && { metadataContext: { filterMetadata: { "envoy.lb": { fields } } } }),
    });
  }

  answer(body: string, endOfStream: boolean): void {
    this.send({ responseBody: { body: Buffer.from(body), endOfStream } });
  }

  /** The next message of the picker. */
  async next(): Promise<ProcessingResponse> {
    const answer = this.#answers.shift();
    return answer ?? new Promise((resolve) => void this.#waiting.push(resolve));
  }

  async nexts(count: number): Promise<ProcessingResponse[]> {
    const all: ProcessingResponse[] = [];
    while (all.length < count) all.push(await this.next());
    return all;
  }

  /** Messages that came and were not read. */
  get unread(): number {
    return this.#answers.length;
  }

  async end(): Promise<void> {
    this.#stream.end();
    await this.ended;
  }

  cancel(): void {
    this.#stream.cancel();
  }
}

const JSON_BODY = { "content-type": "application/json" };

function hint(subset: readonly string[] | string): Struct {
  const key = "x-gateway-destination-endpoint-subset";
  if (typeof subset === "string") return { fields: { [key]: { stringValue: subset } } };
  return { fields: { [key]: { listValue: { values: subset.map((stringValue) => ({ stringValue })) } } } };
}

/** A header that a reply sets; undefined where it sets none of that name. */
export function headerOf(reply: ProcessingResponse, name: string): string | undefined {
  const common = reply.requestHeaders ?? reply.requestBody ?? reply.responseHeaders;
  const set = common?.response?.headerMutation?.setHeaders ?? reply.immediateResponse?.headers.setHeaders ?? [];
  return set.find(({ header }) => header.key === name)?.header.rawValue?.toString();
}

export function metadataOf(reply: ProcessingResponse): string | undefined {
  const inner = reply.dynamicMetadata?.fields?.["envoy.lb"]?.structValue;
  return inner?.fields?.["x-gateway-destination-endpoint"]?.stringValue;
}

/** What a reply in full duplex passes on of a body. */
export function pieceOf(reply: ProcessingResponse): { body: string; endOfStream: boolean } {
  const common = reply.requestBody ?? reply.responseBody;
  const piece = common?.response?.bodyMutation?.streamedResponse;
  return { body: piece?.body?.toString() ?? "", endOfStream: piece?.endOfStream ?? false };
}
