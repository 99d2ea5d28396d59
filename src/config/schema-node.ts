import * as z from "zod";

type NodeType = "integer" | "number" | "string" | "boolean" | "array" | "object" | "null";

/** The part of JSON Schema that zod writes for our schemas, with our own `expected` and `secret`. */
export interface SchemaNode {
  /** Several of a value that may also be null. */
  readonly type?: NodeType | readonly NodeType[];
  readonly description?: string;
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly const?: string | number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly minLength?: number;
  readonly format?: string;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly required?: readonly string[];
  readonly items?: SchemaNode;
  readonly additionalProperties?: SchemaNode | boolean;
  readonly anyOf?: readonly SchemaNode[];
  readonly oneOf?: readonly SchemaNode[];
  /** What a value must be, in words, where the rest cannot say it. */
  readonly expected?: string;
  /** The value, and what lies in it, must not be shown, whatever was written there. */
  readonly secret?: boolean;
}

export type Path = readonly (string | number)[];

/** Schemas are few and never change. */
const NODES = new WeakMap<z.ZodType, SchemaNode>();

/**
 * The schema as plain data that can be walked. To have zod write all of the configuration's is a tenth of a start, and few of
 * its sections are looked at: where all keys may be left out, each is written when it is asked for.
 */
export function schemaNode(schema: z.ZodType): SchemaNode {
  const known = NODES.get(schema);
  if (known !== undefined) return known;
  const node = isOfSections(schema) ? sectionsNode(schema) : written(schema);
  NODES.set(schema, node);
  return node;
}

function isOfSections(schema: z.ZodType): schema is z.ZodObject<Shape> {
  if (!(schema instanceof z.ZodObject) || schema.def.checks !== undefined) return false;
  return Object.values(schema.shape as Shape).every(({ _zod }) => _zod.optin !== undefined);
}

function sectionsNode(schema: z.ZodObject<Shape>): SchemaNode {
  const properties: Record<string, SchemaNode> = {};
  for (const [key, section] of Object.entries(schema.shape)) {
    Object.defineProperty(properties, key, { enumerable: true, get: () => schemaNode(section) });
  }
  return { ...written(schema.pick({})), properties };
}

type Shape = Readonly<Record<string, z.ZodType>>;

function written(schema: z.ZodType): SchemaNode {
  return z.toJSONSchema(schema, { io: "input", unrepresentable: "any", target: "draft-2020-12" }) as SchemaNode;
}

/**
 * The node that governs what is at `path`; undefined below a key that the schema does not know. Of a choice by one key, as
 * of `type`, the branch that `value` names there; without a value no branch is known.
 */
export function nodeAt(root: SchemaNode, path: Path, value?: unknown): SchemaNode | undefined {
  let node: SchemaNode | undefined = root;
  let at = value;
  for (const key of path) {
    const isSecret = node?.secret === true;
    node = node === undefined ? undefined : childOf(branchOf(node, at), key);
    if (isSecret && node !== undefined) node = { ...node, secret: true };
    at = at !== null && typeof at === "object" ? Reflect.get(at, key) : undefined;
  }
  return node;
}

function branchOf(node: SchemaNode, value: unknown): SchemaNode {
  if (value === null || typeof value !== "object") return node;
  const named = (node.oneOf ?? node.anyOf)?.find(({ properties }) =>
    Object.entries(properties ?? {}).some(
      ([key, { const: word }]) => word !== undefined && Reflect.get(value, key) === word,
    ),
  );
  return named ?? node;
}

function childOf(node: SchemaNode, key: string | number): SchemaNode | undefined {
  if (typeof key === "number") return node.items;
  const named = node.properties !== undefined && Object.hasOwn(node.properties, key) ? node.properties[key] : undefined;
  if (named !== undefined) return named;
  return typeof node.additionalProperties === "object" ? node.additionalProperties : undefined;
}

/** What the schema accepts, in words, for error messages and for the table of keys. */
export function expectation(node: SchemaNode): string {
  if (node.expected !== undefined) return node.expected;
  if (node.enum !== undefined) return `one of ${node.enum.join(", ")}`;
  if (node.const !== undefined) return String(node.const);
  if (node.anyOf !== undefined) return node.anyOf.map(expectation).join(" or ");
  if (node.type === undefined) return "a value";
  if (typeof node.type === "object") return node.type.map((type) => typeExpectation(type, node)).join(" or ");
  return typeExpectation(node.type, node);
}

function typeExpectation(type: NodeType, node: SchemaNode): string {
  switch (type) {
    case "integer":
      return `an integer${range(node)}`;
    case "number":
      return `a number${range(node)}`;
    case "string":
      return FORMATS[node.format ?? ""] ?? ((node.minLength ?? 0) > 0 ? "a string that is not empty" : "a string");
    case "boolean":
      return "true or false";
    case "array":
      return node.maxItems === undefined ? "a list" : `a list of at most ${node.maxItems}`;
    case "object":
      return "a mapping";
    case "null":
      return "null";
  }
}

const FORMATS: Readonly<Record<string, string>> = {
  uri: "a URL",
  "date-time": "a date and time such as 2026-01-31T12:00:00Z",
};

function range(node: SchemaNode): string {
  const low = node.exclusiveMinimum !== undefined ? `(${node.exclusiveMinimum}` : `[${node.minimum ?? "-inf"}`;
  if (low === "[-inf" && node.maximum === undefined) return "";
  return ` in ${low}, ${node.maximum ?? "inf"}]`;
}
