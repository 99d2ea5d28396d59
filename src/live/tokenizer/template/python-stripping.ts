import { pythonStrip, type Side } from "./python-strip.ts";
import { fieldOf, isSyntaxNode, visitSyntax } from "./syntax-node.ts";

const SIDES: ReadonlyMap<unknown, Side> = new Map<unknown, Side>([
  ["strip", "both"],
  ["lstrip", "left"],
  ["rstrip", "right"],
]);

/** Functions that a template must be given once withPythonStripping has been over it. */
export const STRIP_FUNCTIONS: Readonly<Record<string, (text: unknown, characters?: unknown) => string>> = {
  gnomon_strip_both: stripping("both"),
  gnomon_strip_left: stripping("left"),
  gnomon_strip_right: stripping("right"),
};

/**
 * Turns `x.strip(c)`, its siblings and `x | trim` of a parsed template into calls of the functions above, in place:
 * @huggingface/jinja has JavaScript's white space and leaves the characters out of account, which Qwen 3's template and
 * others give.
 */
export function withPythonStripping(program: unknown): void {
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
