// A compiled program: each line beside the part that computes it, and what was found beside the truth.
import { dataTable, tableRow } from "./data_table.js";
import { element, fixed, short, visible } from "./elements.js";
import { thumbnail } from "./heatmap.js";
import { headName, patternIndexFor, patternOf, patternSteps } from "./report_data.js";

export function programSection(state) {
  const { program } = pageData;
  if (!program) return null;
  const lines = element("div", {});
  const values = element("div", {});
  const paint = () => {
    lines.replaceChildren(lineTable(program, state));
    values.replaceChildren(valueTable(program, program.traces[state.sequence] ?? program.traces[0]));
  };
  state.onSequence.push(paint);
  paint();
  return element(
    "section",
    { id: "program" },
    element("h2", {}, "The program"),
    element(
      "p",
      {},
      `The weights of this model were compiled from the program ${program.name}`,
      program.answers ? `, which answers ${program.answers}` : "",
      ". So the truth about every head is known, and the methods of this page can be judged by it.",
    ),
    element(
      "p",
      { class: "hint" },
      "A line is a variable. query.x is x at the query, the other names of a condition are those at a key. " +
        "A pattern is that of the head on the sequence chosen below, rows are queries. Of a head: the role of its pattern on the " +
        "probe, the role that the program says, and whether it was found; the accuracy without it, which must fall. " +
        "No test looks at a single feed-forward.",
    ),
    lines,
    idleHeads(program),
    element("h3", {}, "The values of the lines"),
    element("p", { class: "hint" }, "As the residual stream holds them behind the last layer: the largest of a variable's directions, or its number."),
    values,
  );
}

/** A row for each line of the program. */
function lineTable(program, state) {
  const columns = ["line", "computed by", "pattern", "read by", "looks like", "without it"];
  const row = (line) => {
    const found = program.heads.find(({ head }) => head === line.head);
    const cells = [
      element("td", { class: "text" }, found ? headButton(line.head, state) : line.part),
      element("td", { class: "text" }, found ? patternPicture(line.head, state) : ""),
      element("td", { class: "text" }, line.read_by.join(", ")),
      element("td", { class: "text" }, ...(found ? looks(found) : ["–"])),
      element("td", { class: "text" }, ...(found ? uses(found, program.untouched) : [""])),
    ];
    return tableRow(element("span", {}, element("b", {}, visible(line.variable)), ` = ${line.how}`), cells);
  };
  const table = dataTable("The lines of the program", columns, program.lines.map(row), { class: "program" });
  return table;
}

function headButton(name, state) {
  const at = pageData.heads.findIndex(([known]) => known === name);
  return element("button", { type: "button", onclick: () => state.choose(at) }, name);
}

function patternPicture(name, state) {
  const at = pageData.heads.findIndex(([known]) => known === name);
  if (!patternSteps.length || at < 0) return "";
  return element("div", { class: "small-pattern", title: `the pattern of ${headName(at)}` }, thumbnail(patternOf(state.sequence, patternIndexFor(state.sequence, Infinity), at)));
}

/** What its pattern looks like, beside what the program says. */
function looks({ looks_like: role, must_look_like: must, role_is: is }) {
  const truth = must === "open" ? "the program leaves it open" : `by the program: ${must}`;
  return [element("div", {}, role), element("div", { class: "soft" }, truth), verdict(is)];
}

function uses({ without, used_as: used, use_is: is }, untouched) {
  if (!without) return [""];
  const left = `${fixed(without.accuracy, 2)} of ${fixed(untouched.accuracy, 2)}`;
  return [element("div", {}, left), used ? element("div", { class: "soft" }, `used as: ${used}`) : null, verdict(is)];
}

/** `found`, `missed`, …; what is wrong stands out. */
function verdict(is) {
  if (!is) return null;
  const isWrong = is === "missed" || is === "falsely found";
  return element("b", { class: isWrong ? "wrong" : "right" }, is);
}

/** The heads whose weights are 0: nothing may be found of them. */
function idleHeads(program) {
  const idle = program.heads.filter(({ computes }) => computes === null);
  if (!idle.length) return null;
  const isFalse = ({ role_is: role, use_is: use }) => [role, use].includes("falsely found");
  const wrong = idle.filter(isFalse);
  const names = (heads) => heads.map(({ head }) => head).join(", ");
  const found = wrong.length ? `Falsely found: ${names(wrong)}.` : "No test finds anything of them.";
  return element("p", {}, `Heads with weights 0, which write nothing: ${names(idle)}. `, found);
}

/** A row a line, a column a token. */
function valueTable(program, trace) {
  if (!trace) return element("p", {}, "No sequence is on this page.");
  const header = [...trace.tokens.keys()].map((at) => short(trace.tokens[at], 6));
  const cell = (line, value, at) =>
    element("td", { class: "lens", title: `${line.variable} at ${at} ${visible(trace.tokens[at])}: ${value || "nothing"}` }, value ? short(value, 6) : "·");
  const rows = program.lines.map((line, at) =>
    tableRow(visible(line.variable), trace.values[at].map((value, position) => cell(line, value, position))),
  );
  return dataTable("The values of the lines", ["", ...header], rows, { class: "lens values" });
}
