import assert from "node:assert/strict";
import { test } from "node:test";
import type { Markup, MarkupContent } from "#page/part/markup.ts";
import { EMPTY_PAGE, type PageActions } from "#page/status/page-state.ts";
import type { RolloutOrder } from "#page/status/rollout-order.ts";
import { rolloutSection } from "#page/status/rollout-section.ts";
import { rolloutCase } from "./overview-case.ts";

function all(content: MarkupContent, isWanted: (one: Markup) => boolean): Markup[] {
  if (content === undefined || content === false || typeof content === "string") return [];
  return [...(isWanted(content) ? [content] : []), ...content.children.flatMap((child) => all(child, isWanted))];
}

function textOf(content: MarkupContent): string {
  if (content === undefined || content === false) return "";
  return typeof content === "string" ? content : content.children.map(textOf).join("");
}

function shown(rollouts: Parameters<typeof rolloutSection>[0], orders: RolloutOrder[] = [], order = EMPTY_PAGE.order) {
  const actions = { order: (one: RolloutOrder) => void orders.push(one) } as unknown as PageActions;
  return rolloutSection(rollouts, { ...EMPTY_PAGE, order }, actions);
}

const classed = (name: string) => (one: Markup) =>
  String(one.attributes["class"] ?? "")
    .split(" ")
    .includes(name);
const starts = (markup: Markup) => all(markup, (one) => one.attributes["aria-label"] === "Start a rollout");

test("a rollout under way has a line on its health, good or with what is wrong; one that has ended has none", () => {
  const line = (more: Parameters<typeof rolloutCase>[0]) =>
    all(shown([rolloutCase(more)]), classed("health")).map(textOf);
  assert.match(line({ phase: "running", health: [] }).join(), /^Health: good/);
  const wrong = line({ phase: "paused", health: ["other: it answered nothing", "control: it has too many"] });
  assert.deepEqual(wrong, ["Health: other: it answered nothing; control: it has too many."]);
  assert.deepEqual(line({ phase: "promoted" }), []);
});

test("where none is under way one can be started: name, profile and design are one order; what became of it is shown there", () => {
  assert.equal(starts(shown([rolloutCase({ phase: "running" })])).length, 0);
  for (const phase of ["promoted", "rolled-back"] as const) {
    assert.equal(starts(shown([rolloutCase({ phase })])).length, 1);
  }
  const orders: RolloutOrder[] = [];
  const [form] = all(shown([], orders), ({ tag }) => tag === "form");
  const values: Record<string, string> = {
    "rollout-name": " next ",
    "rollout-profile": "lmetric",
    "rollout-design": "canary",
  };
  let prevented = false;
  const namedItem = (name: string) => ({ value: values[name] ?? assert.fail(name) });
  const submit = form!.attributes["onsubmit"] as unknown as (event: object) => void;
  submit({ preventDefault: () => void (prevented = true), currentTarget: { elements: { namedItem } } });
  const order: RolloutOrder = { rollout: "next", step: "start", profile: "lmetric", design: "canary" };
  assert.deepEqual([prevented, orders], [true, [order]]);
  const refused = shown([], [], { order, kind: "refused", message: "arms[1].profile: expected another" });
  assert.match(textOf(starts(refused)[0]), /arms\[1\]\.profile: expected another/);
  const locked = starts(shown([], [], { order, kind: "locked", message: "" }))[0]!;
  assert.equal(all(locked, (one) => one.attributes["id"] === "admin-token").length, 1);
});

test("the first line of a rollout is the verdict of the API as a sentence, word for word", () => {
  const text = "after 6 of 11 blocks: round-robin is slower by 9 to 22 % (E2E mean); roll back";
  const rollout = rolloutCase({ phase: "running" });
  const lines = all(shown([{ ...rollout, verdict: { ...rollout.verdict, text } }]), classed("verdict"));
  assert.deepEqual(lines.map(textOf), [`A${text.slice(1)}.`]);
});
