import type { OrderStep, RolloutOrder } from "./rollout-order.ts";
import { element, type Markup } from "../part/markup.ts";
import type { RolloutCard } from "./overview.ts";
import type { PageActions, PageState } from "./page-state.ts";

const NAMES: Readonly<Record<OrderStep, string>> = {
  start: "Start",
  pause: "Pause",
  resume: "Go on",
  promote: "Promote",
  rollback: "Roll back",
};

/** The steps that a rollout may take now. */
function stepsOf({ name, phase, arms }: Pick<RolloutCard, "name" | "phase" | "arms">): RolloutOrder[] {
  if (phase !== "running" && phase !== "paused") return [];
  const promotions = arms.slice(1).map((arm): RolloutOrder => ({ rollout: name, step: "promote", arm: arm.name }));
  return [
    { rollout: name, step: phase === "running" ? "pause" : "resume" },
    ...promotions,
    { rollout: name, step: "rollback" },
  ];
}

/** Buttons of a rollout, and what became of the last one. Promotion and rollback are asked for twice. */
export function rolloutOrders(
  rollout: RolloutCard,
  { order: state }: Pick<PageState, "order">,
  actions: PageActions,
): Markup | undefined {
  const steps = stepsOf(rollout);
  const own = state?.order.rollout === rollout.name && state.order.step !== "start" ? state : undefined;
  if (steps.length === 0 && own === undefined) return undefined;
  const isSure = (one: RolloutOrder) => own?.kind === "sure" && isSame(one, own.order);
  const text = (one: RolloutOrder) =>
    `${isSure(one) ? "Sure? " : ""}${NAMES[one.step]}${one.arm === undefined ? "" : ` ${one.arm}`}`;
  return element(
    "div",
    { class: "orders", role: "group", "aria-label": `What to do with ${rollout.name}` },
    steps.map((one) =>
      element(
        "button",
        {
          type: "button",
          key: `${one.step} ${one.arm ?? ""}`,
          disabled: own?.kind === "asking",
          onclick: () => actions.order(one),
        },
        text(one),
      ),
    ),
    own !== undefined &&
      element("p", { role: "status", class: own.kind === "refused" ? "bad" : undefined }, own.message),
    own?.kind === "refused" &&
      own.order.step === "promote" &&
      own.order.evenSo !== true &&
      element(
        "button",
        { type: "button", onclick: () => actions.order({ ...own.order, evenSo: true }) },
        `Promote ${own.order.arm} even so`,
      ),
    own?.kind === "locked" && adminForm(own.order, actions),
  );
}

export function isSame(one: RolloutOrder, other: RolloutOrder): boolean {
  return one.rollout === other.rollout && one.step === other.step && one.arm === other.arm;
}

interface Submitted {
  preventDefault(): void;
  readonly currentTarget: { readonly elements: { namedItem(name: string): { value: string } | null } };
}

/** Asks for the token that an order needs. */
export function adminForm(order: RolloutOrder, { sendAdminToken }: Pick<PageActions, "sendAdminToken">): Markup {
  const onsubmit = (event: Submitted): void => {
    event.preventDefault();
    const input = event.currentTarget.elements.namedItem("admin-token");
    if (input === null) return;
    sendAdminToken(input.value, order);
    input.value = "";
  };
  return element(
    "form",
    { onsubmit },
    element("label", { for: "admin-token" }, "Token of administration"),
    element("input", { id: "admin-token", name: "admin-token", type: "password", autocomplete: "off" }),
    element("button", {}, NAMES[order.step]),
  );
}
