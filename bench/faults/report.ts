/** One line of a part's result. */
export interface Row {
  readonly what: string;
  readonly figure: string;
  readonly holds: boolean;
}

export function printRows(title: string, rows: readonly Row[]): void {
  console.log(`\n${title}\n\n| | | |\n|---|---|---|`);
  for (const { what, figure, holds } of rows)
    console.log(`| ${what} | ${figure} | ${holds ? "holds" : "**does not hold**"} |`);
}
