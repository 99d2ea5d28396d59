import type { ContentFormat } from "./engine-messages.ts";
import { fieldOf, isSyntaxNode, type SyntaxNode, visitSyntax } from "./syntax-node.ts";

/** What can be known of a chat template by reading it. */
export interface TemplateReading {
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
export function readTemplate(program: unknown): TemplateReading {
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
