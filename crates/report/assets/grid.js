// A grid of coloured cells on one canvas: quick enough for 512 × 512, reachable by mouse, finger and keyboard.
import { inkOn, themeColour } from "./colour.js";
import { drawnForWidth, element, fixed, inSightFirst, short } from "./elements.js";

/** Labels are as high as their cells, within these. */
const LABEL_HEIGHTS = [8, 11];
const LARGEST_CELL = 18;

/** The cells as an image of one pixel each, on `canvas` where there is one already; a cell without colour stays clear. */
export function cellImage(rows, columns, colour, canvas = element("canvas")) {
  if (canvas.width !== columns) canvas.width = columns;
  if (canvas.height !== rows) canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const { data } = image;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const found = colour(row, column);
      if (!found) continue;
      const at = 4 * (row * columns + column);
      data[at] = found[0];
      data[at + 1] = found[1];
      data[at + 2] = found[2];
      data[at + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

/**
 * A grid. `view()` says what is drawn: `{rows, columns, colour(row, column), number(row, column)?, rowLabels?,
 * columnLabels?, label, largestCell?, widestCell?, rings?: [[row, column]]}`; a cell without colour is hatched. With
 * `number`, numbers stand in the cells where they fit; `rings` are drawn around cells. `onPoint` hears the place under the pointer or cursor, `onPick` the place that was clicked
 * or chosen with Enter: `{row, column}`, one of them null over a label, or null for nowhere.
 */
export function grid({ view, onPoint = () => {}, onPick = () => {} }) {
  const canvas = element("canvas", { tabindex: "0", role: "application", "aria-roledescription": "matrix" });
  const node = element("div", { class: "grid" }, canvas);
  let layout = null;
  let image;
  let pointed = null;
  let picked = null;
  let highlight = { rows: [], columns: [] };

  const draw = drawnForWidth(node, (width) => {
    const shown = view();
    layout = layoutFor(shown, width);
    image = cellImage(shown.rows, shown.columns, shown.colour, image);
    canvas.setAttribute("aria-label", shown.label);
    paint();
  });
  const drawInTheme = inSightFirst(node, draw);
  document.addEventListener("themechange", () => node.isConnected && drawInTheme());

  function paint() {
    if (!layout) return;
    const { width, height } = layout;
    const density = devicePixelRatio || 1;
    resize(canvas, width, height, density);
    const context = canvas.getContext("2d");
    context.setTransform(density, 0, 0, density, 0, 0);
    context.clearRect(0, 0, width, height);
    paintGrid(context, layout, image, { pointed, picked, highlight });
  }

  function placeAt(event) {
    if (!layout) return null;
    const box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - layout.left) / layout.cellWidth);
    const row = Math.floor((event.clientY - box.top - layout.top) / layout.cellHeight);
    const within = {
      row: row >= 0 && row < layout.shown.rows ? row : null,
      column: column >= 0 && column < layout.shown.columns ? column : null,
    };
    return within.row === null && within.column === null ? null : within;
  }

  function point(place) {
    if (place?.row === pointed?.row && place?.column === pointed?.column) return;
    pointed = place;
    paint();
    onPoint(place);
  }

  function pick(place) {
    picked = place;
    paint();
    onPick(place);
  }

  canvas.addEventListener("pointermove", (event) => point(placeAt(event)));
  canvas.addEventListener("pointerleave", () => point(null));
  canvas.addEventListener("click", (event) => {
    const place = placeAt(event);
    const again = place && picked && place.row === picked.row && place.column === picked.column;
    pick(again ? null : place);
  });
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[event.key];
    const { rows, columns } = view();
    if (move) {
      const from = { row: pointed?.row ?? picked?.row ?? 0, column: pointed?.column ?? picked?.column ?? 0 };
      const clamp = (value, end) => Math.min(Math.max(value, 0), end - 1);
      point({ row: clamp(from.row + move[0], rows), column: clamp(from.column + move[1], columns) });
    } else if (event.key === "Enter" || event.key === " ") {
      pick(pointed);
    } else if (event.key === "Escape") {
      pick(null);
    } else {
      return;
    }
    event.preventDefault();
  });

  return {
    node,
    /** Draws anew: what `view` says has changed. */
    draw,
    pick,
    /** Moves the place that is picked by so many rows and columns. */
    nudge(down, right) {
      const { rows, columns } = view();
      const clamp = (value, end) => Math.min(Math.max(value, 0), end - 1);
      pick({ row: clamp((picked?.row ?? 0) + down, rows), column: clamp((picked?.column ?? 0) + right, columns) });
    },
    /** Marks rows and columns without asking anybody. */
    highlight(rows, columns = []) {
      highlight = { rows, columns };
      paint();
    },
  };
}

/** A canvas that has its size keeps it: a new one costs more than what is drawn. */
function resize(canvas, width, height, density) {
  const [across, down] = [Math.round(width * density), Math.round(height * density)];
  if (canvas.width === across && canvas.height === down) return;
  canvas.width = across;
  canvas.height = down;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
}

/** Where cells and labels stand in a canvas of this width. */
function layoutFor(shown, width) {
  const { rows, columns, rowLabels, columnLabels } = shown;
  const widest = (labels) => Math.max(...labels.map((label) => [...short(label)].length)) * 6.7 + 8;
  const left = rowLabels ? Math.ceil(widest(rowLabels)) : 1;
  const top = columnLabels ? Math.ceil(widest(columnLabels)) : 1;
  const room = (width - left - 1) / columns;
  const cell = Math.min(room, shown.largestCell ?? LARGEST_CELL);
  const cellWidth = Math.min(room, shown.widestCell ?? cell);
  const cellHeight =
    shown.cellHeight ?? (rowLabels ? Math.max(cell, Math.min(LABEL_HEIGHTS[1], (cell * columns) / rows)) : cell);
  return {
    shown,
    left,
    top,
    cellWidth,
    cellHeight,
    width: Math.ceil(left + columns * cellWidth + 1),
    height: Math.ceil(top + rows * cellHeight + 1),
  };
}

function paintGrid(context, layout, image, { pointed, picked, highlight }) {
  const { shown, left, top, cellWidth, cellHeight } = layout;
  const [wide, high] = [shown.columns * cellWidth, shown.rows * cellHeight];
  const ink = themeColour("--ink");
  hatch(context, left, top, wide, high);
  context.imageSmoothingEnabled = false;
  context.drawImage(image, left, top, wide, high);
  context.strokeStyle = themeColour("--line");
  context.lineWidth = 1;
  context.strokeRect(left + 0.5, top + 0.5, wide - 1, high - 1);
  if (shown.number && cellWidth >= 30) paintNumbers(context, layout);

  const rows = new Set(
    [pointed?.row, picked?.row, ...highlight.rows].filter((row) => row !== null && row !== undefined),
  );
  const columns = new Set(
    [pointed?.column, picked?.column, ...highlight.columns].filter((column) => column !== null && column !== undefined),
  );
  const around = (x, y, w, h, colour, thick) => {
    context.strokeStyle = colour;
    context.lineWidth = thick;
    context.strokeRect(x, y, w, h);
  };
  const mark = themeColour("--mark");
  for (const [row, column] of shown.rings ?? []) {
    const [x, y] = [left + column * cellWidth, top + row * cellHeight];
    around(x - 1.5, y - 1.5, cellWidth + 3, cellHeight + 3, mark, 2);
  }
  for (const row of rows) around(left, top + row * cellHeight, wide, cellHeight, mark, 1.5);
  for (const column of columns) around(left + column * cellWidth, top, cellWidth, high, mark, 1.5);
  for (const place of [picked, pointed]) {
    if (place && place.row !== null && place.column !== null) {
      around(left + place.column * cellWidth, top + place.row * cellHeight, cellWidth, cellHeight, ink, 2);
    }
  }
  paintLabels(context, layout, rows, columns);
}

const font = (height) => `${height}px ui-monospace, monospace`;

/** Numbers in the cells, in an ink that is read on their colour. */
function paintNumbers(context, { shown, left, top, cellWidth, cellHeight }) {
  context.font = font(LABEL_HEIGHTS[1]);
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let row = 0; row < shown.rows; row++) {
    for (let column = 0; column < shown.columns; column++) {
      const colour = shown.colour(row, column);
      if (!colour) continue;
      context.fillStyle = inkOn(colour);
      const at = [left + (column + 0.5) * cellWidth, top + (row + 0.5) * cellHeight + 1];
      context.fillText(fixed(shown.number(row, column), 2), ...at);
    }
  }
}

/** As many labels as there is room for; those of marked rows and columns always. */
function paintLabels(context, { shown, left, top, cellWidth, cellHeight }, rows, columns) {
  context.textBaseline = "middle";
  context.direction = "ltr";
  const height = (size) => Math.min(Math.max(size, LABEL_HEIGHTS[0]), LABEL_HEIGHTS[1]);
  const stands = (index, size, marked) => {
    if (marked.has(index)) return true;
    const crowded = [...marked].some((other) => Math.abs(other - index) * size < height(size) - 0.5);
    return index % Math.max(1, Math.ceil((height(size) - 0.5) / size)) === 0 && !crowded;
  };
  const [plain, mark] = [themeColour("--ink"), themeColour("--mark")];
  context.font = font(height(cellHeight));
  context.textAlign = "right";
  shown.rowLabels?.forEach((text, row) => {
    if (!stands(row, cellHeight, rows)) return;
    context.fillStyle = rows.has(row) ? mark : plain;
    context.fillText(short(text), left - 4, top + (row + 0.5) * cellHeight);
  });
  // Columns are named upwards: turned by a quarter, across is up.
  context.save();
  context.rotate(-Math.PI / 2);
  context.font = font(height(cellWidth));
  context.textAlign = "left";
  shown.columnLabels?.forEach((text, column) => {
    if (!stands(column, cellWidth, columns)) return;
    context.fillStyle = columns.has(column) ? mark : plain;
    context.fillText(short(text), 4 - top, left + (column + 0.5) * cellWidth);
  });
  context.restore();
}

/** Slanted lines, where there is no number to show. */
function hatch(context, x, y, width, height) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.fillStyle = themeColour("--paper");
  context.fillRect(x, y, width, height);
  context.strokeStyle = themeColour("--hatch");
  context.lineWidth = 1;
  context.beginPath();
  for (let at = x - height; at < x + width; at += 6) {
    context.moveTo(at, y + height);
    context.lineTo(at + height, y);
  }
  context.stroke();
  context.restore();
}
