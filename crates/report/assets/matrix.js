// A matrix of signed numbers or of weights: colours, and numbers where they fit.
import { signedColour, signedColours, signedLegend, weightColour } from "./colour.js";
import { element, fixed, visible } from "./elements.js";
import { grid } from "./grid.js";

/** Numbers row by row. */
export function table(rows, columns, values) {
  return {
    rows,
    columns,
    values,
    at: (row, column) => values[row * columns + column],
    row: (row) => values.slice(row * columns, (row + 1) * columns),
    column: (column) => Array.from({ length: rows }, (_, row) => values[row * columns + column]),
  };
}

/** Numbers that are computed by `make` when somebody first asks for one. */
export function lateTable(rows, columns, make) {
  let made = null;
  const whole = () => (made ??= table(rows, columns, make()));
  return {
    rows,
    columns,
    get values() {
      return whole().values;
    },
    at: (row, column) => whole().at(row, column),
    row: (row) => whole().row(row),
    column: (column) => whole().column(column),
  };
}

/** The same numbers with rows for columns. */
export function transposed({ rows, columns, at }) {
  return table(
    columns,
    rows,
    Float32Array.from({ length: rows * columns }, (_, i) => at(i % rows, Math.floor(i / rows))),
  );
}

/**
 * Draws a matrix. `{name, table, rowLabels?, columnLabels?, rowNames?, columnNames?: where a label is too short to tell
 * its row or column, weights?: true for numbers between 0 and 1,
 * shows?(row, column): false for a cell that is masked}`; `onPick` hears `{row, column}` of the cell that was clicked.
 * `highlight(rows, columns)` marks some, `pick(row, column)` chooses one.
 */
export function matrix(
  {
    name,
    table: numbers,
    rowLabels,
    columnLabels,
    rowNames = rowLabels,
    columnNames = columnLabels,
    weights = false,
    shows = () => true,
  },
  onPick = () => {},
) {
  const largest = numbers.values.reduce(
    (most, value) => (Number.isFinite(value) ? Math.max(most, Math.abs(value)) : most),
    0,
  );
  const readout = element("span", { class: "readout", "aria-live": "polite" });
  const fits = numbers.columns <= 8;
  const cells = grid({
    view: () => {
      const colours = signedColours();
      return {
        rows: numbers.rows,
        columns: numbers.columns,
        colour: (row, column) => {
          if (!shows(row, column)) return null;
          const value = numbers.at(row, column);
          return weights ? weightColour(value) : signedColour(value, largest, colours);
        },
        number: fits ? numbers.at : undefined,
        rowLabels,
        columnLabels,
        largestCell: 11,
        widestCell: fits ? 48 : undefined,
        cellHeight: fits ? 22 : undefined,
        label: `${name}, ${numbers.rows} × ${numbers.columns}. Arrow keys move, Enter shows how the number was made.`,
      };
    },
    onPoint: (place) => {
      readout.textContent = place && place.row !== null && place.column !== null ? told(place) : "";
    },
    onPick: (place) => onPick(place),
  });
  const title = (labels, at) => (labels ? `${at} ${visible(labels[at])}` : String(at));
  const told = ({ row, column }) => {
    const value = shows(row, column) ? fixed(numbers.at(row, column), 4) : "masked";
    return `[${title(rowNames, row)}, ${title(columnNames, column)}] ${value}`;
  };
  const caption = element(
    "figcaption",
    {},
    element("b", {}, name),
    ` ${numbers.rows} × ${numbers.columns}`,
    weights ? ". " : null,
    weights ? null : signedLegend(largest),
    readout,
  );
  return {
    // As wide as its columns, beside others; no narrower than it can be told apart.
    node: element(
      "figure",
      {
        class: "matrix",
        style: `flex: ${numbers.columns + 2} 1 0; min-width: min(100%, ${3 * numbers.columns + 48}px)`,
      },
      caption,
      cells.node,
    ),
    highlight: cells.highlight,
    pick: cells.pick,
  };
}
