import { element, type Markup } from "../part/markup.ts";
import type { PageActions, PageState } from "./page-state.ts";
import { adminForm } from "./rollout-orders.ts";

/** Designs that need nothing but their name. */
const DESIGNS: readonly string[] = ["canary", "switchback", "split", "shadow"];

interface Submitted {
  preventDefault(): void;
  readonly currentTarget: { readonly elements: { namedItem(name: string): { value: string } | null } };
}

/** Where none is under way: the form that begins one, of a profile beside the policy, and what became of it. */
export function rolloutStart({ order: state }: Pick<PageState, "order">, actions: PageActions): Markup {
  const own = state?.order.step === "start" ? state : undefined;
  const onsubmit = (event: Submitted): void => {
    event.preventDefault();
    const valueOf = (name: string) => event.currentTarget.elements.namedItem(name)?.value.trim() ?? "";
    const [rollout, profile, design] = [valueOf("rollout-name"), valueOf("rollout-profile"), valueOf("rollout-design")];
    actions.order({ rollout, step: "start", profile, design });
  };
  return element(
    "div",
    { class: "orders", role: "group", "aria-label": "Start a rollout" },
    element(
      "form",
      { onsubmit },
      field("rollout-name", "Name"),
      field("rollout-profile", "Profile beside the policy"),
      element("label", { for: "rollout-design" }, "Design"),
      element(
        "select",
        { id: "rollout-design", name: "rollout-design" },
        DESIGNS.map((design) => element("option", { key: design, value: design }, design)),
      ),
      element("button", { disabled: own?.kind === "asking" }, "Start"),
    ),
    own !== undefined &&
      element("p", { role: "status", class: own.kind === "refused" ? "bad" : undefined }, own.message),
    own?.kind === "locked" && adminForm(own.order, actions),
  );
}

function field(name: string, label: string): Markup {
  return element(
    "span",
    {},
    element("label", { for: name }, label),
    " ",
    element("input", { id: name, name, required: true, autocomplete: "off" }),
  );
}
