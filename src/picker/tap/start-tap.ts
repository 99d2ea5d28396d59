import type { Routes } from "#live/http/route.ts";
import { pathReader } from "../picked-path.ts";
import { type PickerServer, type ProcessingOptions, startProcessing } from "../picker-server.ts";
import { TapStream, type TapStreamShared } from "./tap-stream.ts";

interface TapServerOptions extends ProcessingOptions, Pick<TapStreamShared, "answered" | "counts"> {
  readonly routes: Routes;
}

/** Serves Envoy's external processing to a proxy that is observed; rejects where the address cannot be had. */
export function startTap(options: TapServerOptions): Promise<PickerServer> {
  const { gateway, routes, answered, counts } = options;
  const shared: TapStreamShared = { gateway, pathOf: pathReader(routes, []), answered, counts };
  return startProcessing(options, (replies) => new TapStream(shared, replies));
}
