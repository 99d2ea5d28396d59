import { Template } from "@huggingface/jinja";
import type { EngineMessage, ContentFormat } from "./engine-messages.ts";
import { pythonStrip, type Side } from "./python-strip.ts";
import { fieldOf, isSyntaxNode, visitSyntax, type SyntaxNode } from "./syntax-node.ts";

export interface RenderOptions {
  readonly tools: readonly unknown[] | null;
  /** What else the template may read: chat_template_kwargs and the like. */
  readonly variables: Readonly<Record<string, unknown>>;
  readonly addGenerationPrompt: boolean;
  /** The last message is left open for the model to go on with. */
  readonly continueFinalMessage: boolean;
}

export const PLAIN_RENDER: RenderOptions = {
  tools: null,
  variables: {},
  addGenerationPrompt: true,
  continueFinalMessage: false,
};

const CONTINUE_TAG = "CONTINUE_FINAL_MESSAGE_TAG ";

/** A model's chat template, parsed once. */
export class ChatTemplate {
  readonly reading: TemplateReading;
  readonly #template: Template;
  readonly #specialTokens: Readonly<Record<string, string>>;

  /** `specialTokens` are bos_token, eos_token and the like. Throws an error where the source is no template. */
  constructor(source: string, specialTokens: Readonly<Record<string, string>>) {
    this.#template = new Template(source);
    this.#specialTokens = specialTokens;
    this.reading = readTemplate(this.#template.parsed);
    withPythonStripping(this.#template.parsed);
  }

  /** The text that the engine tokenizes; undefined where the template refuses, as the engine then does. */
  render(messages: readonly EngineMessage[], options: RenderOptions): string | undefined {
    const shown = options.continueFinalMessage ? withOpenEnd(messages) : messages;
    if (shown === undefined) return undefined;
    let rendered: string;
    try {
      rendered = this.#template.render({
        ...STRIP_FUNCTIONS,
        ...this.#specialTokens,
        ...options.variables,
        messages: shown,
        tools: options.tools,
        documents: options.variables["documents"] ?? null,
        add_generation_prompt: options.addGenerationPrompt,
      });
    } catch {
      return undefined;
    }
    return options.continueFinalMessage ? cutAtOpenEnd(rendered) : rendered;
  }
}

function withOpenEnd(messages: readonly EngineMessage[]): EngineMessage[] | undefined {
  const last = messages.at(-1);
  if (last === undefined) return undefined;
  const { content } = last;
  if (typeof content === "string") return [...messages.slice(0, -1), { ...last, content: content + CONTINUE_TAG }];
  const part = content.at(-1);
  if (part === undefined) return undefined;
  const parts = [...content.slice(0, -1), { ...part, text: part.text + CONTINUE_TAG }];
  return [...messages.slice(0, -1), { ...last, content: parts }];
}

function cutAtOpenEnd(rendered: string): string | undefined {
  const at = rendered.lastIndexOf(CONTINUE_TAG.trimEnd());
  if (at < 0) return undefined;
  return rendered.startsWith(CONTINUE_TAG, at) ? rendered.slice(0, at) : pythonStrip(rendered.slice(0, at), "right");
}

const SIDES: ReadonlyMap<unknown, Side> = new Map<unknown, Side>([
  ["strip", "both"],
  ["lstrip", "left"],
  ["rstrip", "right"],
]);

/** Functions that a template must be given once withPythonStripping has been over it. */
const STRIP_FUNCTIONS: Readonly<Record<string, (text: unknown, characters?: unknown) => string>> = {
  gnomon_strip_both: stripping("both"),
  gnomon_strip_left: stripping("left"),
  gnomon_strip_right: stripping("right"),
};

/**
 * Turns `x.strip(c)`, its siblings and `x | trim` of a parsed template into calls of the functions above, in place:
 * @huggingface/jinja has JavaScript's white space and leaves the characters out of account, which Qwen 3's template and
 * others give.
 */
function withPythonStripping(program: unknown): void {
  visitSyntax(program, (node) => {
    const strip = node.type === "CallExpression" ? methodCall(node) : node.type === "FilterExpression" && trim(node);
    if (strip !== false && strip !== undefined) Object.assign(node, strip);
  });
}

interface Call {
  readonly type: "CallExpression";
  readonly callee: unknown;
  readonly args: readonly unknown[];
}

function methodCall(node: Readonly<Record<string, unknown>>): Call | undefined {
  const callee = node["callee"];
  if (!isSyntaxNode(callee) || callee.type !== "MemberExpression") return undefined;
  const side = SIDES.get(fieldOf(callee["property"], "value"));
  return side === undefined ? undefined : call(side, callee["object"], node["args"] as unknown[]);
}

function trim(node: Readonly<Record<string, unknown>>): Call | undefined {
  const filter = node["filter"];
  const name = fieldOf(filter, "value") ?? fieldOf(fieldOf(filter, "callee"), "value");
  if (name !== "trim") return undefined;
  return call("both", node["operand"], (fieldOf(filter, "args") as unknown[] | undefined) ?? []);
}

function call(side: Side, operand: unknown, args: readonly unknown[]): Call {
  const callee = { type: "Identifier", value: `gnomon_strip_${side}` };
  return { type: "CallExpression", callee, args: [operand, ...args] };
}

function stripping(side: Side): (text: unknown, characters?: unknown) => string {
  return (text, characters) => {
    if (typeof text !== "string") throw new TypeError("only text can be stripped");
    return pythonStrip(text, side, typeof characters === "string" ? characters : undefined);
  };
}

/** What can be known of a chat template by reading it. */
interface TemplateReading {
  /** Every name and every text that it mentions. */
  readonly mentions: ReadonlySet<string>;
  readonly contentFormat: ContentFormat;
  /** Texts that it looks for in what it is given: content that holds one may be rendered otherwise. */
  readonly lookedFor: readonly string[];
}

const COMPARISONS: ReadonlySet<unknown> = new Set(["in", "not in", "==", "!="]);
/** What these take off is white space at the ends, which rendering samples shows. */
const STRIPPING: ReadonlySet<unknown> = new Set(["strip", "lstrip", "rstrip", "trim"]);

/** Reads a parsed template of @huggingface/jinja. */
function readTemplate(program: unknown): TemplateReading {
  const mentions = new Set<string>();
  const lookedFor = new Set<string>();
  let contentFormat: ContentFormat = "string";
  visitSyntax(program, (node) => {
    if (node.type === "Identifier" || node.type === "StringLiteral") mentions.add(String(node["value"]));
    if (node.type === "For" && isContent(node["iterable"])) contentFormat = "parts";
    for (const text of soughtBy(node)) lookedFor.add(text);
  });
  return { mentions, contentFormat, lookedFor: [...lookedFor] };
}

function soughtBy(node: SyntaxNode): string[] {
  if (node.type === "BinaryExpression") {
    const { left, right } = node;
    if (!COMPARISONS.has(fieldOf(node["operator"], "value")) || isRole(left) || isRole(right)) return [];
    return [...literals(left), ...literals(right)];
  }
  if (node.type === "CallExpression") {
    const callee = node["callee"];
    const name = fieldOf(callee, "value") ?? fieldOf(fieldOf(callee, "property"), "value");
    const texts = literals(node["args"]);
    return STRIPPING.has(name) ? texts.filter((text) => text.trim() !== "") : texts;
  }
  return [];
}

/** The texts that an operand is or lists. */
function literals(operand: unknown): string[] {
  if (Array.isArray(operand)) return operand.flatMap(literals);
  if (!isSyntaxNode(operand)) return [];
  if (operand.type === "StringLiteral") return [String(operand["value"])];
  return operand.type === "ArrayLiteral" || operand.type === "TupleLiteral" ? literals(operand["value"]) : [];
}

function isRole(operand: unknown): boolean {
  const name = fieldOf(operand, "value") ?? fieldOf(fieldOf(operand, "property"), "value");
  return typeof name === "string" && name.toLowerCase().includes("role");
}

/** `message.content`, `message["content"]` or a variable of that name, filtered or not. */
function isContent(iterable: unknown): boolean {
  if (!isSyntaxNode(iterable)) return false;
  if (iterable.type === "FilterExpression" || iterable.type === "TestExpression") return isContent(iterable["operand"]);
  if (iterable.type === "SelectExpression") return isContent(iterable["lhs"]);
  if (iterable.type === "Identifier") return iterable["value"] === "content";
  return iterable.type === "MemberExpression" && fieldOf(iterable["property"], "value") === "content";
}
