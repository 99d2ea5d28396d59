import { isPlain } from "#config/merge-patch.ts";
import { pathText } from "#config/problem.ts";
import type { Path } from "#config/schema-node.ts";
import type { ChangedKey } from "#live/admin/policy-admin.ts";

/** The keys in which two documents differ, in order. */
export function changedKeys(before: unknown, after: unknown): ChangedKey[] {
  const changed: ChangedKey[] = [];
  const walk = (a: unknown, b: unknown, path: Path): void => {
    if (isPlain(a) && isPlain(b)) {
      for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) walk(a[key], b[key], [...path, key]);
    } else if (JSON.stringify(a) !== JSON.stringify(b)) {
      changed.push({
        path: pathText(path),
        ...(a !== undefined && { before: a }),
        ...(b !== undefined && { after: b }),
      });
    }
  };
  walk(before, after, []);
  return changed;
}
