// The tables of a comparison: the configurations, the numbers at the end, the heads by role.
import { dataTable, tableRow } from "./data_table.js";
import { between, element, fixed } from "./elements.js";
import { term } from "./glossary.js";

const names = () => pageData.sides.map(({ name }) => name);
const isOne = () => pageData.sides.length === 1;

/** A measure, with what it means where that has to be said. */
const inWords = (name) => (name.startsWith("in-context score") ? term("in-context score", name) : name);

/** The keys that differ. */
export function keysTable() {
  if (!pageData.keys.length) return null;
  const rows = pageData.keys.map(([key, values]) => tableRow(key, values));
  return element("div", {}, element("h3", {}, "What differs in the configurations"), dataTable("What differs", ["key", ...names()], rows));
}

/** What was measured at the end: a column for each side and its difference to the first, or for each seed. */
export function measuresTable() {
  const columns = isOne()
    ? ["", "mean", "range", ...pageData.sides[0].runs.map(({ seed }) => `seed ${seed}`)]
    : ["", ...pageData.sides.flatMap(({ name }, at) => (at ? [name, `${name} − ${names()[0]}`] : [name]))];
  const rows = pageData.measures.map(({ name, sides, differences }) => {
    if (isOne()) {
      const [{ mean, values }] = sides;
      return tableRow(inWords(name), [fixed(mean, 4), range(values, 4), ...values.map((value) => fixed(value, 4))]);
    }
    return tableRow(inWords(name), sides.flatMap((side, at) => (at ? [withHalf(side), difference(differences[at])] : [withHalf(side)])));
  });
  return dataTable("At the end", columns, rows);
}

function withHalf({ mean, interval }) {
  return interval ? `${fixed(mean, 4)} ± ${fixed((interval.high - interval.low) / 2, 4)}` : fixed(mean, 4);
}

function difference(found) {
  if (!found) return "–";
  const sign = found.mean > 0 ? "+" : "";
  return `${sign}${fixed(found.mean, 4)} ± ${fixed((found.high - found.low) / 2, 4)}`;
}

/** When each curve had gone half of its way. */
export function halfWayTable() {
  const columns = isOne() ? ["half of its way at step", "range", ...pageData.sides[0].runs.map(({ seed }) => `seed ${seed}`)] : ["half of its way at step", ...names()];
  const rows = pageData.half_way.map(([name, sides]) => {
    const ranges = sides.map(({ values }) => range(values, 0));
    return tableRow(inWords(name), isOne() ? [...ranges, ...sides[0].values.map((value) => fixed(value, 0))] : ranges);
  });
  return dataTable("Half of its way", columns, rows);
}

/** What is known of the heads of each role, a line for each side, or for each seed where there is one side. */
export function rolesTable() {
  if (!pageData.roles.length) return element("p", {}, "No head of any run looks like anything.");
  const [{ sides: accuracies }] = pageData.measures;
  const rows = pageData.roles.flatMap((role) => {
    const [only] = role.sides;
    if (isOne()) {
      const ofSeed = (run) => roleRow(role.role, `seed ${pageData.sides[0].runs[run].seed}`, headNames(only.heads[run]), (values, digits = 3) => fixed(values[run], digits), only, accuracies[0]);
      return [ofSide(role.role, "all seeds", only, accuracies[0], { class: "all" }), ...only.heads.map((_, run) => ofSeed(run))];
    }
    return role.sides.map((side, at) => ofSide(role.role, names()[at], side, accuracies[at]));
  });
  const columns = ["looks like", isOne() ? "seed" : "run", ...COLUMNS];
  return element(
    "table",
    { class: "lines", "aria-label": "Heads by role" },
    element("thead", {}, element("tr", {}, columns.map((name) => element("th", { scope: "col" }, term(name))))),
    element("tbody", {}, rows),
  );
}

const COLUMNS = ["heads", "first at step", "highest score", "accuracy", "without them"];

function ofSide(role, name, side, accuracy, attributes = {}) {
  const heads = side.heads.length === 1 ? headNames(side.heads[0]) : `${range(side.count.values, 0)} a seed`;
  return roleRow(role, name, heads, (values, digits = 3) => range(values, digits), side, accuracy, attributes);
}

/** `told` writes the values of the runs that the line is of. */
function roleRow(role, name, heads, told, { emerged, highest, without }, accuracy, attributes = {}) {
  const texts = [heads, told(emerged.values, 0), told(highest.values), told(accuracy.values), told(without.values)];
  return element(
    "tr",
    attributes,
    element("th", { scope: "row" }, role),
    element("td", {}, name),
    texts.map((text, at) => element("td", { "data-name": COLUMNS[at], class: text === "–" ? "empty" : null }, text)),
  );
}

const headNames = (heads) => (heads.length ? (heads.length > 6 ? String(heads.length) : heads.join(" ")) : "none");

/** The lowest and the highest value, and of how many runs they are. */
export function range(values, digits) {
  const known = values.filter((value) => value !== null);
  if (!known.length) return "–";
  const [low, high] = [Math.min(...known), Math.max(...known)].map((value) => fixed(value, digits));
  const count = known.length < values.length ? ` (${known.length} of ${values.length})` : "";
  return `${low === high ? low : between(low, high)}${count}`;
}
