import { type MarkupContent, element, type Markup } from "./markup.ts";

export interface TableColumn {
  readonly name: string;
  /** CSS classes of its cells: "text" for what is read from the left. */
  readonly style?: string;
  /** Orders the rows by it. */
  readonly sort?: {
    readonly isActive: boolean;
    readonly direction: "ascending" | "descending";
    readonly by: () => void;
  };
}

export interface TableRow {
  readonly key: string;
  readonly style?: string;
  /** In the order of the columns; the first one heads the row. */
  readonly cells: readonly MarkupContent[];
  /** Shown below it, as wide as the table. */
  readonly detail?: MarkupContent;
}

export interface DataTable {
  /** What it is; it stands above, or is for screen readers alone. */
  readonly caption: string;
  readonly columns: readonly TableColumn[];
  readonly rows: readonly TableRow[];
  /** Becomes cards where there is no room: each cell then has its column's name beside it. */
  readonly folds?: boolean;
}

/**
 * A table with a caption and headed rows. Roles are written out, since a browser takes them from a table that is laid out
 * as something else.
 */
export function dataTable({ caption, columns, rows, folds = false }: DataTable): Markup {
  return element(
    "table",
    { class: folds ? "folds" : undefined, role: "table" },
    element("caption", { class: "unseen" }, caption),
    element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, columns.map(heading))),
    element(
      "tbody",
      { role: "rowgroup" },
      rows.flatMap((row) => rowOf(row, columns)),
    ),
  );
}

function heading({ name, style, sort }: TableColumn): Markup {
  const ariaSort = sort === undefined ? undefined : sort.isActive ? sort.direction : "none";
  const text = sort === undefined ? name : element("button", { type: "button", class: "sort", onclick: sort.by }, name);
  return element("th", { class: style, scope: "col", role: "columnheader", "aria-sort": ariaSort }, text);
}

function rowOf({ key, style, cells, detail }: TableRow, columns: readonly TableColumn[]): Markup[] {
  const shown = cells.map((cell, i) => {
    const { name, style: own } = columns[i]!;
    return i === 0
      ? element("th", { class: own, scope: "row", role: "rowheader" }, cell)
      : element("td", { class: own, role: "cell", "data-label": name }, cell);
  });
  const row = element("tr", { key, class: style, role: "row" }, shown);
  if (detail === undefined) return [row];
  const wide = element("td", { class: "detail", role: "cell", colspan: columns.length }, detail);
  return [row, element("tr", { key: `${key} detail`, class: "detail-row", role: "row" }, wide)];
}
