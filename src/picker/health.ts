import type { CallReceiver, GrpcCall, GrpcMethod } from "./grpc/call.ts";
import { MessageReader, tagOf, WITH_LENGTH } from "./grpc/message-reader.ts";
import { GRPC_STATUS } from "./grpc/message-frames.ts";
import { MessageWriter } from "./grpc/message-writer.ts";

/** The service through which Envoy asks. */
export const EXTERNAL_PROCESSOR = "envoy.service.ext_proc.v3.ExternalProcessor";
const HEALTH = "grpc.health.v1.Health";

/** grpc.health.v1.HealthCheckResponse.ServingStatus. */
const SERVING = 1;
const NOT_SERVING = 2;
const SERVICE_UNKNOWN = 3;
const WATCH_MILLIS = 1_000;
const LIVENESS = "liveness";
/** The last is what charts of llm-d's picker ask about. */
const SERVICES: readonly string[] = ["", LIVENESS, "readiness", EXTERNAL_PROCESSOR, "inference-extension"];

/**
 * The services that may be asked about: liveness answers while the process does; the others, and the server as a whole
 * (""), while an endpoint is known that requests can go to.
 */
export class PickerHealth {
  readonly #ready: () => boolean;
  readonly #watches = new Map<GrpcCall, NodeJS.Timeout>();

  constructor(ready: () => boolean) {
    this.#ready = ready;
  }

  readonly methods: readonly (readonly [path: string, method: GrpcMethod])[] = [
    [`/${HEALTH}/Check`, (call) => new Question(call, (service) => this.#check(call, service))],
    [`/${HEALTH}/Watch`, (call) => this.#watch(call)],
    [`/${HEALTH}/List`, (call) => new Question(call, () => this.#list(call))],
  ];

  stop(): void {
    for (const call of this.#watches.keys()) call.end(GRPC_STATUS.unavailable, "the picker leaves");
  }

  #check(call: GrpcCall, service: string): void {
    const standing = this.#of(service);
    if (standing === SERVICE_UNKNOWN)
      return call.end(GRPC_STATUS.notFound, "the services are liveness, readiness and the external processor");
    call.send(framedStanding(standing));
    call.end();
  }

  #list(call: GrpcCall): void {
    const writer = new MessageWriter();
    for (const service of SERVICES.toReversed()) {
      const entry = writer.length;
      writer.number(1, this.#of(service));
      writer.message(2, entry);
      writer.text(1, service);
      writer.message(1, entry);
    }
    writer.frame(0);
    call.send(writer.written());
    call.end();
  }

  #watch(call: GrpcCall): CallReceiver {
    return new Question(
      call,
      (service) => {
        let last: number | undefined;
        const look = (): void => {
          const standing = this.#of(service);
          if (standing !== last) call.send(framedStanding(standing));
          last = standing;
        };
        this.#watches.set(call, setInterval(look, WATCH_MILLIS).unref());
        look();
      },
      () => {
        clearInterval(this.#watches.get(call));
        this.#watches.delete(call);
      },
    );
  }

  #of(service: string): number {
    if (service === LIVENESS) return SERVING;
    if (!SERVICES.includes(service)) return SERVICE_UNKNOWN;
    return this.#ready() ? SERVING : NOT_SERVING;
  }
}

/** The one message of a call, which names a service. */
class Question implements CallReceiver {
  readonly #call: GrpcCall;
  readonly #ask: (service: string) => void;
  readonly closed: () => void;
  #asked = false;

  constructor(call: GrpcCall, ask: (service: string) => void, closed: () => void = () => {}) {
    this.#call = call;
    this.#ask = ask;
    this.closed = closed;
  }

  message(bytes: Buffer): void {
    if (this.#asked) return;
    this.#asked = true;
    let service = "";
    const reader = new MessageReader(bytes);
    while (reader.next()) {
      if (reader.tag === tagOf(1, WITH_LENGTH)) service = reader.utf8();
      else reader.skip();
    }
    this.#ask(service);
  }

  clientEnded(): void {
    if (!this.#asked) this.#call.end(GRPC_STATUS.internal, "no question");
  }
}

function framedStanding(standing: number): Buffer {
  const writer = new MessageWriter();
  writer.number(1, standing);
  writer.frame(0);
  return writer.written();
}
