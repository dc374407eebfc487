// Where in a sequence heads hold their roles: a score at each query.
import { curves } from "./curves.js";
import { dataTable, tableRow } from "./data_table.js";
import { element, fixed, floats, interval } from "./elements.js";
import { term } from "./glossary.js";
import { command } from "./picture.js";
import { headName } from "./report_data.js";
import { ROLE } from "./vocabulary.js";

const ROLES = Object.values(ROLE);
/** More lines than this are a tangle; the table has all. */
const MOST_LINES = 16;

export function positionsSection() {
  const { positions, run } = pageData;
  const lines = [];
  const rows = [];
  positions.forEach(({ ranges, scores }, head) => {
    for (const [measure, values] of scores) {
      const points = [...floats(values)].map((value, position) => [position, value]);
      lines.push({ measure, name: `${headName(head)} ${measure}`, points: points.filter(([, value]) => !Number.isNaN(value)) });
    }
    for (const range of ranges) rows.push(rangeRow(head, range));
  });
  if (!lines.length) return null;
  // As roles are told: first tokens, where many heads rest, last.
  lines.sort((a, b) => ROLES.indexOf(a.measure) - ROLES.indexOf(b.measure));
  const shown = lines.slice(0, MOST_LINES);
  const more = lines.length > shown.length ? ` Of ${lines.length} the first ${shown.length} are drawn, as the roles are told.` : "";
  return element(
    "section",
    { id: "positions" },
    element("h2", {}, "By position"),
    element(
      "p",
      {},
      "The score of each role that a head holds, at each query of the ",
      term("probe"),
      `. A mean hides a head that does one thing early in a sequence and another late.${more}`,
    ),
    element(
      "div",
      { class: "two first" },
      curves({
        name: "Scores by query position, at the end",
        x: { name: "position of the query" },
        y: { name: "score", low: 0, high: 1 },
        lines: shown,
        command: command(run.name, "positions"),
      }).node,
      rows.length ? ranges(rows) : null,
    ),
  );
}

function ranges(rows) {
  const columns = ["head", "role", "positions", "share of the way", element("span", { class: "wide-only" }, "95 % band"), term("writes")];
  return element(
    "div",
    {},
    dataTable("Ranges", columns, rows, { class: "dense" }),
    element(
      "p",
      { class: "hint" },
      "Share of the way: from evenly spread attention (0) to the ceiling (1). A range is eight or more queries in a row that are surely past half of the way, found on one half of the sequences and measured on the other.",
    ),
  );
}

function rangeRow(head, { role, first, last, share, low, high, writes }) {
  const written = typeof writes === "number" ? fixed(writes, 2) : "–";
  return tableRow(headName(head), [element("td", { class: "text" }, role), `${first}–${last}`, fixed(share, 2), element("td", { class: "wide-only" }, interval(low, high)), written]);
}
