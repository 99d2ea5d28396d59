import { type sendUnaryData, type ServerUnaryCall, type ServerWritableStream, status } from "@grpc/grpc-js";
import { EXTERNAL_PROCESSOR } from "./protocol.ts";

/** grpc.health.v1.HealthCheckResponse.ServingStatus. */
const SERVING = 1;
const NOT_SERVING = 2;
const SERVICE_UNKNOWN = 3;
const WATCH_MILLIS = 1_000;

interface Question {
  readonly service?: string;
}

interface Standing {
  readonly status: number;
}

/**
 * The services that may be asked about: liveness answers while the process does; the others, and the server as a whole
 * (""), while an endpoint is known that requests can go to.
 */
export class PickerHealth {
  readonly #ready: () => boolean;
  readonly #watches = new Set<NodeJS.Timeout>();

  constructor(ready: () => boolean) {
    this.#ready = ready;
  }

  readonly handlers = {
    Check: (call: ServerUnaryCall<Question, Standing>, answer: sendUnaryData<Standing>): void => {
      const standing = this.#of(call.request.service ?? "");
      if (standing !== SERVICE_UNKNOWN) return answer(null, { status: standing });
      answer({ code: status.NOT_FOUND, details: "the services are liveness, readiness and the external processor" });
    },
    Watch: (call: ServerWritableStream<Question, Standing>): void => {
      let last: number | undefined;
      const look = (): void => {
        const standing = this.#of(call.request.service ?? "");
        if (standing !== last) call.write({ status: standing });
        last = standing;
      };
      const timer = setInterval(look, WATCH_MILLIS).unref();
      this.#watches.add(timer);
      call.on("cancelled", () => {
        clearInterval(timer);
        this.#watches.delete(timer);
      });
      look();
    },
  };

  stop(): void {
    for (const timer of this.#watches) clearInterval(timer);
    this.#watches.clear();
  }

  #of(service: string): number {
    if (service === "liveness") return SERVING;
    if (service !== "" && service !== "readiness" && service !== EXTERNAL_PROCESSOR) return SERVICE_UNKNOWN;
    return this.#ready() ? SERVING : NOT_SERVING;
  }
}
