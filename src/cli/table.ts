/** Columns padded to their widest cell, two spaces apart, without trailing space. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, Bun.stringWidth(cell));
    }
  }
  const padded = (cell: string, column: number) => cell + " ".repeat(widths[column]! - Bun.stringWidth(cell));
  return rows.map((row) => row.map(padded).join("  ").trimEnd()).join("\n");
}
