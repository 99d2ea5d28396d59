import type { Fleet } from "./fleet/fleet.ts";
import type { Input } from "./input/input.ts";
import { type PrefixIndex, takesReports } from "./prefix/prefix-index.ts";

/** What happens to an endpoint, or is reported by it, apart from any request. */
export type EndpointInput = Extract<
  Input,
  { readonly kind: `endpoint-${string}` | `blocks-${string}` | `kv-events-${string}` | "load-observed" }
>;

/** Inputs naming an endpoint that is not here change nothing. */
export function applyEndpointInput(fleet: Fleet, index: PrefixIndex, input: EndpointInput): void {
  switch (input.kind) {
    case "endpoint-joined":
      fleet.join(input.endpoint, input.at);
      break;
    case "endpoint-changed":
      fleet.change(input.endpoint);
      break;
    case "endpoint-left":
      fleet.leave(input.endpoint);
      break;
    case "endpoint-cordoned":
    case "endpoint-uncordoned":
      fleet.cordon(input.endpoint, input.kind === "endpoint-cordoned", input.at);
      break;
    case "endpoint-checked":
      fleet.checked(input.endpoint, input.healthy, input.at);
      break;
    case "endpoint-slept":
      sleep(fleet, index, input);
      break;
    case "endpoint-suspended":
      fleet.suspend(input.endpoint);
      break;
    case "endpoint-resumed":
      fleet.resume(input.endpoint, input.servedUntilWell);
      break;
    case "load-observed":
      fleet.get(input.endpoint)?.observeLoad(input.at, input.load);
      break;
    case "blocks-cleared":
      clear(fleet, index, input);
      break;
    case "blocks-stored":
    case "blocks-removed":
    case "kv-events-alive":
    case "kv-events-missed":
    case "kv-events-lost":
      applyReport(fleet, index, input);
  }
}

function sleep(fleet: Fleet, index: PrefixIndex, input: Extract<Input, { kind: "endpoint-slept" }>): void {
  const { at, endpoint, asleep, emptied } = input;
  fleet.slept(endpoint, asleep, at);
  if (emptied === true) clear(fleet, index, { kind: "blocks-cleared", at, endpoint });
}

type BlocksCleared = Extract<Input, { kind: "blocks-cleared" }>;

/** An engine that was started anew lost what was on its way to it, too. */
function clear(fleet: Fleet, index: PrefixIndex, { at, endpoint, inOrder }: BlocksCleared): void {
  const slot = fleet.get(endpoint)?.slot;
  if (slot === undefined) return;
  if (inOrder === true && takesReports(index)) index.emptied(slot, at);
  else index.clear(slot);
}

type Report = Extract<Input, { readonly kind: "blocks-stored" | "blocks-removed" | `kv-events-${string}` }>;

function applyReport(fleet: Fleet, index: PrefixIndex, input: Report): void {
  const slot = fleet.get(input.endpoint)?.slot;
  if (slot === undefined || !takesReports(index)) return;
  switch (input.kind) {
    case "blocks-stored":
      index.stored(slot, input);
      break;
    case "blocks-removed":
      index.removed(slot, input);
      break;
    case "kv-events-alive":
      index.followed(slot, input.isComplete);
      break;
    case "kv-events-missed":
      index.missed(slot);
      break;
    case "kv-events-lost":
      index.lost(slot, input.reason);
  }
}
