import { PLAIN_RENDER, type ChatTemplate } from "./chat-template.ts";
import type { EngineMessage } from "./engine-messages.ts";
import { pythonStrip } from "./python-strip.ts";

/**
 * A template that, for plain chats which end with the user's turn, puts fixed text around each message:
 *
 *     lead(first role) content between(role, next role) content ... tail
 *
 * with each content as it is or stripped, by role. Llama 3, ChatML and most others are of this kind.
 */
export interface LinearTemplate {
  /** Text before a message, by its role alone for the first, else by `previous>role`. */
  readonly before: ReadonlyMap<string, string>;
  readonly stripped: ReadonlySet<string>;
  /** Text behind the last message, generation prompt included. */
  readonly tail: string;
}

const ROLES = ["system", "user", "assistant"] as const;
const LAST_ROLE = "user";

/** Role sequences to learn from; a template may refuse some. All end with the user's turn. */
const LEARNED: readonly (readonly string[])[] = [
  ["user"],
  ["system", "user"],
  ["assistant", "user"],
  ["user", "user"],
  ["user", "assistant", "user"],
  ["user", "assistant", "assistant", "user"],
  ["system", "user", "assistant", "user", "assistant", "user"],
  ["user", "system", "user"],
  ["user", "assistant", "system", "user"],
  ["system", "assistant", "user"],
  ["system", "system", "user"],
];

/** Contents that a template may treat in ways of its own. */
const CONTENTS: readonly string[] = [
  "Hello there.",
  "",
  " ",
  "\n",
  "  spaced out  ",
  "\nlines\n\nand lines\n",
  "\ttabs\r\n",
  "quotes \" and ' and \\ and `",
  "{{ braces }} {% if x %} {# y #} <b>&amp;</b>",
  "<|eot_id|><|im_end|></s>[INST][/INST]<end_of_turn>",
  "日本語 é 👩‍👧 ",
  "word ".repeat(600),
  "0",
  "None",
  "[]",
];

/** Learns the fixed texts by rendering samples, then checks on others; the reason where the template is of another kind. */
export function learnLinear(template: ChatTemplate): LinearTemplate | string {
  if (template.reading.mentions.has("strftime_now")) return "its chat template shows the date";
  const before = new Map<string, string>();
  const stripped = new Set<string>();
  let tail: string | undefined;
  for (const roles of LEARNED) {
    const parts = fixedTexts(template, roles);
    if (parts === undefined) continue;
    const keys = roles.map((role, at) => pairKey(at === 0 ? undefined : roles[at - 1], role));
    for (const [at, key] of keys.entries()) {
      if ((before.get(key) ?? parts[at]) !== parts[at]) return `its chat template varies the text before ${key}`;
      before.set(key, parts[at]!);
    }
    if ((tail ?? parts.at(-1)) !== parts.at(-1)) return "its chat template varies the text behind the last message";
    tail = parts.at(-1);
  }
  if (tail === undefined || !before.has(LAST_ROLE)) return "its chat template could not be sampled";
  for (const role of ROLES) if (strips(template, role)) stripped.add(role);
  const linear = { before, stripped, tail };
  return checks(template, linear) ? linear : "its chat template is more than fixed text around the messages";
}

/** Key of the text before a message in `before`. */
export function pairKey(previous: string | undefined, role: string): string {
  return previous === undefined ? role : `${previous}>${role}`;
}

/** True where content is rendered like any other. */
export function isOrdinary(template: ChatTemplate, content: string): boolean {
  return !template.reading.lookedFor.some((text) => (text === "" ? content === "" : content.includes(text)));
}

function sample(template: ChatTemplate, role: string, content: string): EngineMessage {
  return template.reading.contentFormat === "string"
    ? { role, content }
    : { role, content: [{ type: "text", text: content }] };
}

function render(template: ChatTemplate, roles: readonly string[], contents: readonly string[]): string | undefined {
  const messages = roles.map((role, at) => sample(template, role, contents[at]!));
  return template.render(messages, PLAIN_RENDER);
}

/** The texts before, between and behind marked contents; undefined where the template refuses or reorders. */
function fixedTexts(template: ChatTemplate, roles: readonly string[]): string[] | undefined {
  const marks = roles.map((_, at) => `Qx${at}Zj`);
  const rendered = render(template, roles, marks);
  if (rendered === undefined) return undefined;
  const texts: string[] = [];
  let from = 0;
  for (const mark of marks) {
    const at = rendered.indexOf(mark, from);
    if (at < 0 || rendered.indexOf(mark, at + 1) >= 0) return undefined;
    texts.push(rendered.slice(from, at));
    from = at + mark.length;
  }
  texts.push(rendered.slice(from));
  return texts;
}

function strips(template: ChatTemplate, role: string): boolean {
  const roles = role === "assistant" ? ["user", role, LAST_ROLE] : [role, LAST_ROLE];
  const contents = roles.map((one, at) => (at === roles.indexOf(role) ? " \nQxZj\n " : `m${one}`));
  const rendered = render(template, roles, contents);
  return rendered !== undefined && rendered.includes("QxZj") && !rendered.includes(" \nQxZj\n ");
}

function checks(template: ChatTemplate, linear: LinearTemplate): boolean {
  for (const [index, roles] of LEARNED.entries()) {
    const long = roles.length > 2 ? [...roles, ...roles, ...roles] : roles;
    for (let shift = 0; shift < CONTENTS.length; shift++) {
      const contents = long.map((_, at) => CONTENTS[(at + shift + index) % CONTENTS.length]!);
      if (!contents.every((content) => isOrdinary(template, content))) continue;
      const joined = join(linear, long, contents);
      const rendered = render(template, long, contents);
      // What the template refuses the engine refuses: its tokens are nobody's.
      if (joined !== undefined && rendered !== undefined && joined !== rendered) return false;
    }
  }
  return true;
}

/** The prompt by the linear reading; undefined where a text before a message is not known. */
function join(linear: LinearTemplate, roles: readonly string[], contents: readonly string[]): string | undefined {
  let text = "";
  for (const [at, role] of roles.entries()) {
    const before = linear.before.get(pairKey(at === 0 ? undefined : roles[at - 1], role));
    if (before === undefined) return undefined;
    text += before + (linear.stripped.has(role) ? pythonStrip(contents[at]!) : contents[at]!);
  }
  return text + linear.tail;
}
