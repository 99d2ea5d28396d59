import type { Fleet } from "./fleet.ts";
import type { Input } from "./input.ts";
import type { PrefixIndex } from "./prefix/prefix-index.ts";

/** What happens to an endpoint, or is reported by it, apart from any request. */
export type EndpointInput = Extract<
  Input,
  { readonly kind: `endpoint-${string}` | `blocks-${string}` | "load-observed" }
>;

/** Inputs naming an endpoint that is not here change nothing. */
export function applyEndpointInput(fleet: Fleet, index: PrefixIndex, input: EndpointInput): void {
  switch (input.kind) {
    case "endpoint-joined":
      fleet.join(input.endpoint);
      break;
    case "endpoint-changed":
      fleet.change(input.endpoint);
      break;
    case "endpoint-left":
      fleet.leave(input.endpoint);
      break;
    case "endpoint-cordoned":
    case "endpoint-uncordoned":
      fleet.cordon(input.endpoint, input.kind === "endpoint-cordoned");
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
    case "blocks-stored":
    case "blocks-removed":
    case "blocks-cleared":
      applyBlocks(fleet, index, input);
  }
}

function applyBlocks(
  fleet: Fleet,
  index: PrefixIndex,
  input: Extract<EndpointInput, { readonly kind: `blocks-${string}` }>,
): void {
  const slot = fleet.get(input.endpoint)?.slot;
  if (slot === undefined) return;
  if (input.kind === "blocks-stored") index.stored?.(slot, input.hashes, input.at);
  else if (input.kind === "blocks-removed") index.removed?.(slot, input.hashes, input.at);
  else index.clear(slot);
}
