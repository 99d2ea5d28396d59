import { type Refusal, refusal } from "#live/http/errors.ts";
import { RequestTargets } from "#live/request/request-target.ts";
import type { Route, Routes } from "#live/http/route.ts";

/** What a request's target means to the picker. */
export interface PickedPath {
  readonly route: Route;
  /** Its body names a model and, mostly, a prompt. */
  readonly takesBody: boolean;
  /** Why it goes nowhere, if it does not. */
  readonly refused?: Refusal;
}

/** Anything that is no route of inference goes to some endpoint, unread: lists of models, probes, what engines add. */
const BESIDE: PickedPath = {
  route: { pattern: "(other)", dialect: "other", countsOnly: false },
  takesBody: false,
};

/**
 * Paths that change an engine, vLLM's. One engine alone would then differ from all others, and whoever may ask for
 * inference would be its administrator.
 */
const ADMINISTRATION: ReadonlySet<string> = new Set([
  "/v1/load_lora_adapter",
  "/v1/unload_lora_adapter",
  "/sleep",
  "/wake_up",
  "/pause",
  "/resume",
  "/abort_requests",
  "/reset_prefix_cache",
  "/reset_mm_cache",
  "/reset_encoder_cache",
  "/release_kv_cache_memory",
  "/collective_rpc",
  "/scale_elastic_ep",
  "/start_profile",
  "/stop_profile",
  "/init_weight_transfer_engine",
  "/shutdown_weight_transfer_engine",
  "/start_weight_update",
  "/start_draft_weight_update",
  "/update_weights",
  "/finish_weight_update",
  "/update_weight_version",
]);
const ADMINISTERED: PickedPath = {
  ...BESIDE,
  refused: refusal(
    "forbidden",
    "This changes engines, and a proxy would send it to one alone. Ask the gateway's administrative port (listen.adminPort, routes.administration), which asks them all.",
  ),
};

/** `administration`: further paths of that kind. */
export function pathReader(routes: Routes, administration: readonly string[]): (target: string) => PickedPath {
  const targets = new RequestTargets(routes);
  return (target) => {
    const known = targets.of(target);
    if (known !== undefined) return { route: known.route, takesBody: true };
    const path = pathOf(target);
    return ADMINISTRATION.has(path) || administration.includes(path) ? ADMINISTERED : BESIDE;
  };
}

/** As a server reads it: without query, escapes, doubled and last slashes. */
function pathOf(target: string): string {
  try {
    const { pathname } = new URL(target.replace(/^\/+/, "/"), "http://picker.invalid");
    return decodeURIComponent(pathname)
      .replaceAll(/\/+/g, "/")
      .replace(/(?<=.)\/$/, "");
  } catch {
    return target;
  }
}
