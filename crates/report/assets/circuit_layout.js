// Where the parts of a circuit stand: the embedding below, the logits above, a row for the heads of each layer.

const ROW = 92;
const MARGIN = 10;
export const BOX = { most: 92, least: 46, height: 34 };
/** Of more heads in a layer only those with an edge are drawn. */
const MOST_HEADS = 12;
/** Where a head reads, as a share of its width from the left. */
const ENTRY = { queries: 0.2, keys: 0.5, values: 0.8 };

/** An end of an edge as a part: `{kind, name, layer?, head?, reads?}`. */
export function partOf(text) {
  const [, reads, name, layer, head] = /^(?:(queries|keys|values) of )?(L(\d+)H(\d+))$/.exec(text) ?? [];
  if (name) return { kind: "head", name, layer: Number(layer), head: Number(head), reads };
  const [, feeding] = /^feed-forward (\d+)$/.exec(text) ?? [];
  if (feeding !== undefined) return { kind: "feed-forward", name: text, layer: Number(feeding) };
  return { kind: text, name: text };
}

/**
 * The places of the parts at the ends of `edges` in a model of `n_layers` layers of `n_heads` heads, for a picture of
 * this width. A picture whose boxes would be too narrow is wider than that.
 */
export function layoutOf({ n_layers: layers, n_heads: heads }, edges, width) {
  const ends = edges.flatMap(({ source, destination }) => [partOf(source), partOf(destination)]);
  const used = new Set(ends.map(({ name }) => name));
  const feeding = new Set(ends.filter(({ kind }) => kind === "feed-forward").map(({ layer }) => layer));
  const rows = Array.from({ length: layers }, (_, layer) => {
    const names = Array.from({ length: heads }, (_, head) => `L${layer}H${head}`);
    return heads <= MOST_HEADS ? names : names.filter((name) => used.has(name));
  });
  const columns = Math.max(3, ...rows.map(({ length }) => length)) + (feeding.size ? 1 : 0);
  const apart = Math.min(Math.max((width - 2 * MARGIN) / columns, BOX.least + 6), 150);
  const box = Math.min(apart - 6, BOX.most);
  const across = Math.max(width, 2 * MARGIN + columns * apart);
  const middle = (across - (feeding.size ? apart : 0)) / 2;
  const places = new Map();
  let level = 1;
  const put = (name, x, at) => places.set(name, { x, level: at });
  rows.forEach((names, layer) => {
    names.forEach((name, at) => put(name, middle + apart * (at - (names.length - 1) / 2), level));
    if (names.length) level += 1;
    if (!feeding.has(layer)) return;
    put(`feed-forward ${layer}`, across - MARGIN - box / 2, level - (names.length ? 0.5 : 0));
    level += names.length ? 0.5 : 1;
  });
  const hasPositions = used.has("positions");
  put("embedding", middle - (hasPositions ? apart * 0.75 : 0), 0);
  if (hasPositions) put("positions", middle + apart * 0.75, 0);
  put("logits", middle, level);
  const height = 2 * MARGIN + BOX.height + level * ROW;
  const at = ({ x, level: row }) => ({ x, y: height - MARGIN - BOX.height / 2 - row * ROW });
  const parts = [...places].map(([name, place]) => ({ ...partOf(name), ...at(place), isUsed: used.has(name) }));
  return { width: across, height, box, parts, place: (name) => at(places.get(name)) };
}

/** The path of an edge: out of the top of its source, into the bottom of its destination. */
export function pathOf(layout, { source, destination }) {
  const [from, to] = [partOf(source), partOf(destination)];
  const start = layout.place(from.name);
  const end = layout.place(to.name);
  const x = end.x + layout.box * ((ENTRY[to.reads] ?? 0.5) - 0.5);
  const [y1, y2] = [start.y - BOX.height / 2, end.y + BOX.height / 2];
  const bend = (y1 - y2) / 2;
  const numbers = [start.x, y1, start.x, y1 - bend, x, y2 + bend, x, y2].map((number) => number.toFixed(1));
  const [sx, sy, ...rest] = numbers;
  return `M${sx} ${sy} C${rest.join(" ")}`;
}

/** Where the names of the inputs of a head stand. */
export function entriesOf({ x, y }, box) {
  const entries = Object.entries(ENTRY);
  return entries.map(([name, share]) => ({ name: name[0], x: x + box * (share - 0.5), y: y + BOX.height / 2 - 3 }));
}
