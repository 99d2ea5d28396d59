import { Command } from "commander";
import { CATALOG } from "#core/profile/catalog.ts";
import { signalsOf } from "#core/profile/build-profile.ts";
import { stagesText } from "#core/profile/profile-stages.ts";
import type { ParameterDescription } from "#core/plugin/parameter.ts";
import type { Plugin, Signal } from "#core/plugin/plugin.ts";
import type { PluginSpec, ProfileSpec, ChooserSpec } from "#core/plugin/spec.ts";
import { ConfigError } from "#config/config-error.ts";
import { unknownWord } from "#config/problem.ts";
import { signalsOfProfile as gaugesStated, signalsText } from "#config/profile-signals.ts";
import { loadProfile, profileNames, type NamedProfile } from "#config/profile-file.ts";

type CatalogEntry = Pick<Plugin<unknown>, "summary" | "reads" | "source" | "parameters">;

/** Lists profiles and plugins, from the files and the catalog that routing itself uses. */
export function profilesCommand(): Command {
  return new Command("profiles")
    .description(
      "List the routing profiles; with names, show those in detail; with --plugins, list the plugins that profiles are made of.",
    )
    .argument("[names...]", "profiles by name or path, or plugins by name")
    .option("--plugins", "list every filter, scorer and picker with its parameters")
    .option("--json", "print JSON")
    .action((names: readonly string[], shape: ReportShape) => {
      process.stdout.write(profilesReport(names, shape));
    });
}

/** What of profiles is shown, and how. */
export interface ReportShape {
  readonly plugins?: boolean;
  readonly json?: boolean;
}

/** The text that the command prints. Throws ConfigError for a profile or plugin that is not there or is broken. */
export function profilesReport(names: readonly string[], { plugins = false, json = false }: ReportShape): string {
  if (plugins) {
    const rows = names.length > 0 ? names.flatMap(pluginsNamed) : pluginRows();
    return json ? asJson(rows) : rows.map(pluginText).join("");
  }
  const profiles = (names.length > 0 ? names : profileNames()).map(loadProfile);
  if (json) return asJson(profiles);
  return names.length > 0 ? profiles.map(profileDetail).join("\n") : `${profiles.map(profileLine).join("")}${MORE}`;
}

const MORE = `
gnomon profiles NAME             a profile's parts, with every parameter
gnomon profiles --plugins        all that profiles can be made of
gnomon explain --profile NAME    the table behind its decision in a state of your own
`;

function pluginsNamed(name: string): PluginRow[] {
  const found = pluginRows().filter((row) => row.name === name);
  const names = [...new Set(pluginRows().map((row) => row.name))];
  if (found.length === 0) throw new ConfigError([`--plugins: ${unknownWord("plugin", name, names)}`]);
  return found;
}

function asJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

function profileLine(profile: NamedProfile): string {
  const { name, summary, source, spec } = profile;
  return `${name.padEnd(26)}${summary}\n${" ".repeat(26)}reads ${signals(spec).join(", ")}; from ${source}\n`;
}

function profileDetail(profile: NamedProfile): string {
  const { name, summary, source, spec } = profile;
  const gauges = `  made for ${signalsText(gaugesStated(profile))}\n`;
  const head = `${name}: ${summary}\n  from ${source}; reads ${signals(spec).join(", ")}\n${gauges}`;
  return `${head}${chooserText(spec)}${stagesText(spec, chooserText)}`;
}

function chooserText(chooser: ChooserSpec): string {
  const sum = chooser.scorers.reduce((total, scorer) => total + scorer.weight, 0);
  const parts = [
    ...chooser.filters.map((filter) => partText("filter", filter, "")),
    ...chooser.scorers.map((scorer) =>
      partText("scorer", scorer, ` weight ${scorer.weight} (${(scorer.weight / sum).toFixed(3)})`),
    ),
    partText("picker", chooser.picker, ""),
  ];
  return parts.join("");
}

/** A plugin of a profile with every parameter's value, given or default. */
function partText(kind: "filter" | "scorer" | "picker", { plugin, parameters }: PluginSpec, weight: string): string {
  const entry = entryOf(kind, plugin);
  const values = Object.entries(entry.parameters).map(([key, described]) => {
    const { [key]: value = described.default } = parameters;
    return `      ${key} = ${value} (${accepted(described)}; default ${described.default}): ${described.meaning}\n`;
  });
  return `  ${kind} ${plugin}${weight}: ${entry.summary}\n      reads ${entry.reads.join(", ")}; from ${entry.source}\n${values.join("")}`;
}

interface PluginRow extends CatalogEntry {
  readonly kind: "filter" | "scorer" | "picker";
  readonly name: string;
}

function pluginRows(): PluginRow[] {
  const rows = (kind: PluginRow["kind"], table: Readonly<Record<string, CatalogEntry>>) =>
    Object.entries(table).map(([name, { summary, reads, source, parameters }]): PluginRow => ({
      kind,
      name,
      summary,
      reads,
      source,
      parameters,
    }));
  return [...rows("filter", CATALOG.filters), ...rows("scorer", CATALOG.scorers), ...rows("picker", CATALOG.pickers)];
}

function pluginText({ kind, name, summary, reads, source, parameters }: PluginRow): string {
  const lines = Object.entries(parameters).map(
    ([key, one]) => `    ${key} (${accepted(one)}; default ${one.default}): ${one.meaning}\n`,
  );
  return `${kind} ${name}: ${summary}\n    reads ${reads.join(", ")}; from ${source}\n${lines.join("")}`;
}

function accepted(one: ParameterDescription): string {
  switch (one.type) {
    case "number":
    case "integer":
      return range(one.type, one.min, one.max);
    case "choice":
      return `one of ${one.values.join(", ")}`;
    case "string":
      return "text";
    case "boolean":
      return "true or false";
  }
}

function range(type: string, min: number | undefined, max: number | undefined): string {
  if (min === undefined) return max === undefined ? type : `${type}, at most ${max}`;
  return max === undefined ? `${type}, at least ${min}` : `${type} from ${min} to ${max}`;
}

/** What a profile's decisions depend on, each signal once. */
function signals(spec: ProfileSpec): Signal[] {
  const real = [...signalsOf(spec)].filter((signal) => signal !== "none");
  return real.length === 0 ? ["none"] : real;
}

function entryOf(kind: PluginRow["kind"], name: string): CatalogEntry {
  const found = pluginRows().find((row) => row.kind === kind && row.name === name);
  if (found === undefined) throw new Error(`invariant broken: a checked profile names ${kind} ${name}`);
  return found;
}
