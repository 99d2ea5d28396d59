/** A number as Python's Prometheus client prints it: always a float, with Go's exponents from a million on. */
export function promFloat(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  const text = pythonRepr(value);
  const dot = text.indexOf(".");
  if (value <= 0 || dot <= 6 || text.includes("e")) return text;
  const mantissa = `${text[0]}.${text.slice(1, dot)}${text.slice(dot + 1)}`.replace(/[0.]+$/, "");
  return `${mantissa}e+${String(dot - 1).padStart(2, "0")}`;
}

function pythonRepr(value: number): string {
  const text = String(value);
  if (text.includes("e")) return text.replace(/e([-+])(\d)$/, "e$10$2");
  return text.includes(".") ? text : `${text}.0`;
}

/** Labels in alphabetical order, as the client writes them; "" for none. */
export function labelText(labels: Readonly<Record<string, string>>): string {
  const names = Object.keys(labels).sort();
  if (names.length === 0) return "";
  return `{${names.map((name) => `${name}="${escapeLabel(labels[name] ?? "")}"`).join(",")}}`;
}

function escapeLabel(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

export type FamilyType = "counter" | "gauge" | "histogram" | "summary";

export function familyHead(name: string, type: FamilyType, help: string): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
}
