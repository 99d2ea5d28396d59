import { type Node, parseSync } from "oxc-parser";
import { type Mutant, mutantAt } from "./mutant.ts";

/** Another operator in the place of each. */
const OTHERS: Readonly<Record<string, readonly string[]>> = {
  "<": ["<="],
  "<=": ["<"],
  ">": [">="],
  ">=": [">"],
  "===": ["!=="],
  "!==": ["==="],
  "+": ["-"],
  "-": ["+"],
  "*": ["/"],
  "/": ["*"],
  "&&": ["||"],
  "||": ["&&"],
  "+=": ["-="],
  "-=": ["+="],
};
const OTHER_BOUND: Readonly<Record<string, string>> = { min: "max", max: "min" };

/** What a function of a declared type returns instead. */
const CONSTANTS: Readonly<Record<string, readonly string[]>> = {
  TSNumberKeyword: ["0"],
  TSBooleanKeyword: ["true", "false"],
};

type ReturnType = string | undefined;

/** A range of the text and what goes there. */
type Edit = readonly [start: number, end: number, replacement: string];

/**
 * Every mutant of a file: relations, sums, products, conjunctions and bounds exchanged, booleans and negations turned,
 * integers one off, calls and guards left out, constants returned. Types, assertions and what is thrown are left alone:
 * there a change is none, or one that no caller can see.
 */
export function mutantsOf(file: string, text: string): Mutant[] {
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]!.message}`);
  const mutants: Mutant[] = [];
  const visit = (node: Node, returns: ReturnType): void => {
    if (isLeftAlone(node)) return;
    for (const [start, end, replacement] of editsOf(node, returns, text)) {
      mutants.push(mutantAt(file, text, start, end, replacement));
    }
    const inside = isFunction(node) ? node.returnType?.typeAnnotation.type : returns;
    for (const child of childrenOf(node)) visit(child, inside);
  };
  visit(program, undefined);
  return mutants;
}

const EXPRESSIONS_WITH_TYPES: ReadonlySet<string> = new Set([
  "TSAsExpression",
  "TSNonNullExpression",
  "TSSatisfiesExpression",
]);
const APART: ReadonlySet<string> = new Set(["ImportDeclaration", "ExportAllDeclaration", "ThrowStatement"]);

function isLeftAlone(node: Node): boolean {
  if (APART.has(node.type)) return true;
  if (node.type.startsWith("TS")) return !EXPRESSIONS_WITH_TYPES.has(node.type);
  return node.type === "CallExpression" && node.callee.type === "Identifier" && node.callee.name === "assert";
}

type FunctionNode = Extract<Node, { type: "FunctionDeclaration" | "FunctionExpression" | "ArrowFunctionExpression" }>;

function isFunction(node: Node): node is FunctionNode {
  return (
    node.type === "FunctionDeclaration" || node.type === "FunctionExpression" || node.type === "ArrowFunctionExpression"
  );
}

function childrenOf(node: Node): Node[] {
  return Object.values(node).flat().filter(isNode);
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}

function editsOf(node: Node, returns: ReturnType, text: string): readonly Edit[] {
  const { type } = node;
  if (type === "BinaryExpression" || type === "LogicalExpression" || type === "AssignmentExpression") {
    const { left, right, operator } = node;
    if ((operator === "+" || operator === "+=") && (isText(left) || isText(right))) return [];
    const at = text.indexOf(operator, left.end);
    return (OTHERS[operator] ?? []).map((other) => [at, at + operator.length, other]);
  }
  if (type === "Literal") return literalEdits(node);
  if (type === "UnaryExpression") return node.operator === "!" ? [[node.start, node.argument.start, ""]] : [];
  if (type === "IfStatement" || type === "ConditionalExpression") return [[node.test.start, node.test.end, "false"]];
  if (type === "ExpressionStatement") return isLeftOut(node.expression) ? [[node.start, node.end, ";"]] : [];
  if (type === "MemberExpression") return boundEdits(node);
  if (type !== "ReturnStatement" || node.argument === null || node.argument.type === "Literal") return [];
  const { start, end } = node.argument;
  return (CONSTANTS[returns ?? ""] ?? []).map((constant) => [start, end, constant]);
}

/** Calls that a class cannot do without stay, and so do assertions. */
function isLeftOut(node: Node): boolean {
  if (node.type === "UpdateExpression") return true;
  if (node.type !== "CallExpression" || node.callee.type === "Super") return false;
  return node.callee.type !== "Identifier" || node.callee.name !== "assert";
}

function boundEdits({ object, property }: Extract<Node, { type: "MemberExpression" }>): Edit[] {
  if (object.type !== "Identifier" || object.name !== "Math" || property.type !== "Identifier") return [];
  const other = OTHER_BOUND[property.name];
  return other === undefined ? [] : [[property.start, property.end, other]];
}

function literalEdits(node: Extract<Node, { type: "Literal" }>): Edit[] {
  if (typeof node.value === "boolean") return [[node.start, node.end, String(!node.value)]];
  if (typeof node.value !== "number" || !Number.isSafeInteger(node.value)) return [];
  return [[node.start, node.end, String(node.value + 1)]];
}

/** A sum of texts is none. */
function isText(node: Node): boolean {
  if (node.type === "TemplateLiteral") return true;
  if (node.type === "BinaryExpression") return isText(node.left) || isText(node.right);
  return node.type === "Literal" && typeof node.value === "string";
}
