/** A node of a template that @huggingface/jinja parsed. */
export interface SyntaxNode {
  readonly type: string;
  readonly [field: string]: unknown;
}

export function isSyntaxNode(value: unknown): value is SyntaxNode {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

/** Shows every node below `value`, outer ones first. */
export function visitSyntax(value: unknown, see: (node: SyntaxNode) => void): void {
  if (typeof value !== "object" || value === null) return;
  if (isSyntaxNode(value)) see(value);
  const children = value instanceof Map ? [...value.keys(), ...value.values()] : Object.values(value);
  for (const child of children) visitSyntax(child, see);
}

export function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
