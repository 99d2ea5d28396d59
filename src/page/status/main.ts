import { type ComponentChild, h, render } from "preact";
import { age } from "../part/format.ts";
import type { MarkupContent } from "../part/markup.ts";
import { app } from "./app.ts";
import { lastSequence, lastSlot, mergeOverview } from "./merge-overview.ts";
import type { DecisionDetail, Overview } from "./overview.ts";
import { EMPTY_PAGE, type PageActions, type PageState } from "./page-state.ts";
import { isSame } from "./rollout-orders.ts";
import type { OrderState, RolloutOrder } from "./rollout-order.ts";
import { troubleOf } from "./trouble.ts";

const POLL_MILLIS = 2_000;
const ANSWER_MILLIS_MAX = 5_000;
/** Pauses between questions to a gateway that does not answer grow to this. */
const PAUSE_MILLIS_MAX = 10_000;
/** With more of them, whose answers are longer, it asks less often. */
const ENDPOINTS_AT_EASE = 250;
/** Kept for this tab alone; it goes into a header, never into an address. */
const TOKEN_KEY = "gnomon-token";

const root = document.querySelector("#page")!;
let state: PageState = EMPTY_PAGE;
let token = sessionStorage.getItem(TOKEN_KEY) ?? "";
let failures = 0;
let timer: number | undefined;
let isAsking = false;
let isDrawing = false;

const actions: PageActions = {
  filter: (filter) => change({ filter }),
  sort: (sort) => change({ sort }),
  showAllEndpoints: (allEndpoints) => change({ allEndpoints }),
  toggleEndpoint: (id) => change({ openEndpoints: toggled(state.openEndpoints, id) }),
  toggleDecision: (sequence) => void toggleDecision(sequence),
  showAllDecisions: (allDecisions) => change({ allDecisions }),
  hold: (held) => change({ held }),
  moveCursor: (cursor) => cursor === state.cursor || change({ cursor }),
  order: (asked) => void order(asked),
  sendAdminToken: (given, asked) => {
    adminToken = given;
    sessionStorage.setItem(ADMIN_TOKEN_KEY, given);
    change({ order: { order: asked, kind: "sure", message: "" } });
    void order(asked);
  },
  sendToken: (given) => {
    token = given;
    sessionStorage.setItem(TOKEN_KEY, given);
    void poll();
  },
};

/** Kept for this tab alone, beside the token that may only look. */
const ADMIN_TOKEN_KEY = "gnomon-admin-token";
let adminToken = sessionStorage.getItem(ADMIN_TOKEN_KEY) ?? "";

/** Pause and going on are made at once; what ends a rollout is asked for twice. */
async function order(asked: RolloutOrder): Promise<void> {
  const before = state.order;
  const isAgain = before?.kind === "sure" && isSame(before.order, asked);
  const needsAgain = (asked.step === "promote" || asked.step === "rollback") && asked.evenSo !== true;
  if (needsAgain && !isAgain) return change({ order: { order: asked, kind: "sure", message: "Press once more." } });
  change({ order: { order: asked, kind: "asking", message: "Asking the gateway …" } });
  const { kind, message } = await ordered(asked);
  change({ order: { order: asked, kind, message } });
  void poll();
}

async function ordered(asked: RolloutOrder): Promise<Pick<OrderState, "kind" | "message">> {
  const given = adminToken === "" ? token : adminToken;
  const headers = {
    "content-type": "application/json",
    authorization: `Bearer ${given}`,
    "x-gnomon-by": "status page",
  };
  const { path, body } = requestOf(asked);
  const signal = AbortSignal.timeout(ANSWER_MILLIS_MAX);
  try {
    const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
    if (answer.status === 401) return { kind: "locked", message: "Only the token of administration may do that." };
    if (!answer.ok) return { kind: "refused", message: await problemOf(answer) };
    const { unkept = [] } = (await answer.json()) as { readonly unkept?: readonly string[] };
    return { kind: "done", message: unkept.length === 0 ? "Done." : `Done, and ${unkept.join("; ")}.` };
  } catch (error) {
    return { kind: "refused", message: error instanceof Error ? error.message : String(error) };
  }
}

function requestOf({ rollout, step, arm, evenSo, profile, design }: RolloutOrder): {
  readonly path: string;
  readonly body: object;
} {
  const path = "admin/rollout";
  if (step === "start") return { path, body: { name: rollout, arms: { control: null, other: profile }, design } };
  const body = { ...(arm !== undefined && { arm }), ...(evenSo === true && { evenSo }) };
  return { path: `${path}/${encodeURIComponent(rollout)}/${step}`, body };
}

function change(changes: Partial<PageState>): void {
  state = { ...state, ...changes };
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(draw);
}

function toggled(set: ReadonlySet<string>, one: string): ReadonlySet<string> {
  const next = new Set(set);
  if (!next.delete(one)) next.add(one);
  return next;
}

function draw(): void {
  isDrawing = false;
  render(nodeOf(app(state, actions)), root);
  document.title = titleOf(state);
}

function nodeOf(content: MarkupContent): ComponentChild {
  if (content === undefined || content === false || typeof content === "string") return content;
  return h(content.tag, { ...content.attributes }, ...content.children.map(nodeOf));
}

function titleOf({ overview, connection }: PageState): string {
  if (connection.kind === "lost") return "no news · gnomon";
  const troubled = (overview?.endpoints ?? []).filter((one) => troubleOf(one).severity > 1).length;
  return troubled === 0 ? "gnomon" : `${troubled} in trouble · gnomon`;
}

/** Asks while somebody looks, again after each answer. */
async function poll(): Promise<void> {
  clearTimeout(timer);
  if (document.hidden || isAsking) return;
  isAsking = true;
  try {
    await ask();
  } finally {
    isAsking = false;
  }
  if (state.connection.kind === "locked") return;
  const slower = Math.max(1, failures, (state.overview?.endpoints.length ?? 0) / ENDPOINTS_AT_EASE);
  timer = setTimeout(() => void poll(), Math.min(PAUSE_MILLIS_MAX, POLL_MILLIS * slower));
}

async function ask(): Promise<void> {
  try {
    const answer = await get(`overview?decisions=${lastSequence(state)}&slot=${lastSlot(state)}`);
    if (answer.status === 401) {
      failures = 0;
      const message = token === "" ? "This gateway asks for a token." : "The gateway does not accept that token.";
      change({ connection: { kind: "locked", message } });
      return;
    }
    if (!answer.ok) throw new Error(await problemOf(answer));
    const overview = (await answer.json()) as Overview;
    failures = 0;
    change(mergeOverview(state, overview, Date.now()));
  } catch (error) {
    failures++;
    lost(error instanceof Error ? error.message : String(error));
  }
}

function lost(message: string): void {
  const { connection } = state;
  const since = connection.kind === "live" ? connection.at : connection.kind === "lost" ? connection.since : undefined;
  change({ now: Date.now(), connection: { kind: "lost", since, message } });
}

function get(path: string): Promise<Response> {
  const headers: Record<string, string> = token === "" ? {} : { authorization: `Bearer ${token}` };
  return fetch(path, { headers, signal: AbortSignal.timeout(ANSWER_MILLIS_MAX) });
}

async function problemOf(answer: Response): Promise<string> {
  const body = (await answer.json().catch(() => ({}))) as { readonly error?: { readonly message?: string } };
  return body.error?.message ?? `status ${answer.status}`;
}

async function toggleDecision(sequence: number): Promise<void> {
  const openDecisions = new Map(state.openDecisions);
  if (openDecisions.delete(sequence)) {
    change({ openDecisions });
    return;
  }
  change({ openDecisions: openDecisions.set(sequence, "Asking the gateway …") });
  const detail = await detailOf(sequence);
  if (state.openDecisions.has(sequence)) {
    change({ openDecisions: new Map(state.openDecisions).set(sequence, detail) });
  }
}

async function detailOf(sequence: number): Promise<DecisionDetail | string> {
  const at = state.decisions.find((one) => one.sequence === sequence)?.at ?? Date.now();
  try {
    const answer = await get(`decisions/${sequence}`);
    if (answer.status === 404)
      return `The gateway no longer keeps this decision: it was made ${age(Date.now() - at)} ago.`;
    if (!answer.ok) return await problemOf(answer);
    return (await answer.json()) as DecisionDetail;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

root.replaceChildren();
document.addEventListener("visibilitychange", () => void poll());
change({});
void poll();
