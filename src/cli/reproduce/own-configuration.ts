import { exportLlmD } from "#config/export-llm-d.ts";
import { exportSmg, isSmgKind, smgCommandLine } from "#config/export-smg.ts";
import type { ProfileSpec } from "#core/plugin/spec.ts";
import { yamlText } from "../output/yaml-text.ts";

/** A threshold that nothing crossed is not known. */
const UNTRIED = ", of which only what these decisions tried is known";

/**
 * The policy as the router that is named has it, to be held beside what it runs with, lines to print; none where the name is not
 * known, or its configuration cannot express that.
 */
export function ownConfiguration(router: string | undefined, spec: ProfileSpec): string[] {
  if (router === undefined) return [];
  if (isSmgKind(router)) {
    const exported = exportSmg(spec, router);
    return exported.ok ? [`as ${router}'s own options${UNTRIED}:`, `  ${smgCommandLine(exported.value)}`] : [];
  }
  if (!router.startsWith("llm-d")) return [];
  const exported = exportLlmD(spec);
  if (!exported.ok) return [];
  return [
    `as llm-d's own EndpointPickerConfig${UNTRIED}:`,
    ...yamlText(exported.value)
      .trimEnd()
      .split("\n")
      .map((line) => `  ${line}`),
  ];
}
