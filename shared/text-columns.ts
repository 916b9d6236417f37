/** Lines of a table for people: each column as wide as its widest cell, nothing behind the last one. */
export function columns(rows: readonly (readonly string[])[], gap: string): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join(gap)
      .trimEnd(),
  );
}
