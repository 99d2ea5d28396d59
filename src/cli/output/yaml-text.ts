import { stringify } from "yaml";

/** A document that people keep: nothing in it refers to another place of it, and lines are not broken. */
export function yamlText(value: unknown): string {
  return stringify(value, { aliasDuplicateObjects: false, lineWidth: 0 });
}
