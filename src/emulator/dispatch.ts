import type { IncomingMessage, ServerResponse } from "node:http";
import { FaultSyntaxError, parseFaults, sortFaults, type FaultSet, type InsteadFault } from "./fault/fault.ts";
import { ApiError, badRequest } from "./http/api-error.ts";
import { parseJsonBody, readWholeBody } from "./http/body.ts";
import { isOpen, newExchange, type ServedRequest } from "./http/exchange.ts";
import { sendEmpty, sendJson, sendPreflightRefusal } from "./http/reply.ts";
import { routeTable, type EmulatorRoute, type RouteTable } from "./route/routes.ts";
import { headerText, type Service } from "./service/service.ts";

const FAULT_HEADER = "x-emulator-fault";

/** Takes every request through what vLLM's middlewares do, to its route. */
export class Dispatcher {
  readonly #service: Service;
  readonly #routes: RouteTable;
  readonly #secret: string;

  constructor(service: Service) {
    this.#service = service;
    this.#routes = routeTable(service.options);
    this.#secret = service.options.apiKey === "" ? "" : `bearer ${service.options.apiKey}`;
  }

  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    const exchange = newExchange(request, response, this.#requestId(request));
    response.once("close", () => this.#service.httpMetrics.record(exchange));
    this.#dispatch(exchange).catch((error: unknown) => this.#fail(exchange, error));
  };

  async #dispatch(exchange: ServedRequest): Promise<void> {
    const { request, path } = exchange;
    const method = request.method ?? "GET";
    if (!this.#authorised(exchange, method)) {
      exchange.vary = false;
      sendJson(exchange, 401, '{"error":"Unauthorized"}');
      return;
    }
    if (
      method === "OPTIONS" &&
      request.headers.origin !== undefined &&
      request.headers["access-control-request-method"]
    ) {
      sendPreflightRefusal(exchange);
      return;
    }
    const methods = this.#routes.get(path);
    const route = methods?.get(method);
    if (route === undefined) {
      this.#refuse(exchange, methods);
      return;
    }
    exchange.handler = path;
    exchange.faults = this.#faults(exchange, route);
    const { instead } = exchange.faults;
    if (instead !== undefined) this.#break(exchange, instead);
    else if (route.kind === "plain") route.handle(this.#service, exchange);
    else await this.#handleJson(exchange, route);
  }

  async #handleJson(exchange: ServedRequest, route: Extract<EmulatorRoute, { kind: "json" }>): Promise<void> {
    const body = await readWholeBody(exchange.request);
    if (body === undefined || !isOpen(exchange)) return;
    await route.handle(this.#service, exchange, parseJsonBody(exchange.request, body));
  }

  /** No such path, another method, or a slash too many. */
  #refuse(exchange: ServedRequest, methods: ReadonlyMap<string, EmulatorRoute> | undefined): void {
    const [allowed] = methods?.keys() ?? [];
    if (allowed !== undefined) {
      const json = '{"detail":"Method Not Allowed"}';
      sendJson(exchange, 405, json, ["allow", allowed]);
      return;
    }
    const { path, request } = exchange;
    const twin = path.endsWith("/") ? path.slice(0, -1) : `${path}/`;
    if (!this.#routes.has(twin)) {
      sendJson(exchange, 404, '{"detail":"Not Found"}');
      return;
    }
    exchange.handler = path;
    const query = (request.url ?? "").slice(path.length);
    sendEmpty(exchange, 307, ["location", `http://${request.headers.host ?? ""}${twin}${query}`]);
  }

  #authorised(exchange: ServedRequest, method: string): boolean {
    if (this.#secret === "" || method === "OPTIONS" || !exchange.path.startsWith("/v1")) return true;
    const given = headerText(exchange, "authorization");
    const space = given.indexOf(" ");
    return `${given.slice(0, space).toLowerCase()}${given.slice(space)}` === this.#secret;
  }

  #requestId(request: IncomingMessage): string {
    if (!this.#service.options.enableRequestIdHeaders) return "";
    const given = request.headers["x-request-id"];
    return typeof given === "string" && given !== "" ? given : this.#service.ids.next(4);
  }

  /** Throws ApiError 400 for a fault that does not exist. */
  #faults(exchange: ServedRequest, route: EmulatorRoute): FaultSet {
    const header = headerText(exchange, FAULT_HEADER);
    const planned = this.#service.faultPlan;
    if (header === "" || !this.#service.options.faults) {
      return planned.draw(exchange.path, route.kind === "json" && route.inference);
    }
    try {
      return sortFaults(parseFaults(header));
    } catch (error) {
      if (error instanceof FaultSyntaxError) throw badRequest(error.message, FAULT_HEADER);
      throw error;
    }
  }

  #break(exchange: ServedRequest, fault: InsteadFault): void {
    switch (fault.kind) {
      case "status": {
        const type = fault.code === 503 ? "Service Unavailable" : "InternalServerError";
        const message = "This status was ordered from the emulator.";
        sendJson(exchange, fault.code, new ApiError(fault.code, type, message).json);
        break;
      }
      case "hang":
        exchange.request.resume();
        break;
      case "reset":
        exchange.request.socket.resetAndDestroy();
        break;
      case "kill":
        this.#service.onKill();
        exchange.request.socket.destroy();
        break;
    }
  }

  #fail(exchange: ServedRequest, error: unknown): void {
    if (!isOpen(exchange) || exchange.response.headersSent) {
      exchange.response.destroy();
      return;
    }
    const known = error instanceof ApiError ? error : unexpected(error);
    if (!exchange.request.complete) exchange.request.resume();
    sendJson(exchange, known.code, known.json);
  }
}

/** A bug of the emulator, reported as a server would report its own. */
function unexpected(error: unknown): ApiError {
  return new ApiError(500, "InternalServerError", error instanceof Error ? error.message : "unknown error");
}
