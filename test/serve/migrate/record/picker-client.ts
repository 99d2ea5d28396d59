import { type ClientDuplexStream, credentials, makeGenericClientConstructor } from "@grpc/grpc-js";
import { EXTERNAL_PROCESSOR, serviceOf } from "../../../picker/protocol.ts";
import type { ProcessingRequest, ProcessingResponse } from "../../../picker/proxy-messages.ts";

const Client = makeGenericClientConstructor(serviceOf("external_processor.proto", EXTERNAL_PROCESSOR), "picker");

/** Asks an endpoint picker as Envoy does. */
export class PickerClient {
  readonly #client: InstanceType<typeof Client>;
  readonly #engines: readonly string[];

  constructor(port: number, engines: readonly string[]) {
    this.#client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
    this.#engines = engines;
  }

  async pick(body: string, id: string): Promise<{ readonly engine: number; readonly end: () => void }> {
    const call = (
      this.#client["Process"]!.bind(this.#client) as () => ClientDuplexStream<ProcessingRequest, ProcessingResponse>
    )();
    const engine = await new Promise<number>((resolve, reject) => {
      call.on("error", reject);
      call.on("data", (message: ProcessingResponse) => {
        const text = JSON.stringify(message, (_, value: unknown) =>
          isBuffer(value) ? Buffer.from(value.data).toString() : value,
        );
        const at = this.#engines.findIndex((address) => text.includes(address));
        if (at >= 0) resolve(at);
        else if (text.includes("immediateResponse")) reject(new Error(text));
      });
      const header = (key: string, value: string) => ({ key, rawValue: Buffer.from(value) });
      const headers = [
        header(":path", "/v1/completions"),
        header(":method", "POST"),
        header("content-type", "application/json"),
        header("x-request-id", id),
      ];
      call.write({ requestHeaders: { headers: { headers }, endOfStream: false } });
      call.write({ requestBody: { body: Buffer.from(body), endOfStream: true } });
    });
    return { engine, end: () => call.end() };
  }
}

function isBuffer(value: unknown): value is { readonly data: number[] } {
  return typeof value === "object" && value !== null && (value as { type?: unknown }).type === "Buffer";
}
