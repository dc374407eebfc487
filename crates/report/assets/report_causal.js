// What heads are used as: what is lost without them, and who has to read what they wrote.
import { curves } from "./curves.js";
import { accuracyByPosition } from "./report_accuracy.js";
import { dataTable, tableRow } from "./data_table.js";
import { element, fixed, interval } from "./elements.js";
import { command, exports } from "./picture.js";
import { headName, layerOf } from "./report_data.js";
import { PLACE, READER, SET } from "./vocabulary.js";

const isHead =
  (name) =>
  ({ heads }) =>
    heads.length === 1 && heads[0] === name;

/** Ablation and path tests of one head at the end of training, as bars, and over training as a curve. */
export function usedAs(head) {
  const row = pageData.uses.at(-1);
  if (!row) return element("p", {}, "What the heads are used as was not measured in this run.");
  const name = headName(head);
  const alone = row.uses.find(isHead(name));
  const sets = row.uses.filter((uses) => uses.name !== SET.layer && uses.heads.length > 1 && uses.heads.includes(name));
  const before = row.uses.find(
    (uses) => uses.name === SET.layer && Number(uses.heads[0].slice(1).split("H")[0]) === layerOf(head) - 1,
  );
  const without = [
    ["nothing switched off", row.untouched],
    alone?.ablated && [`${name} switched off`, alone.ablated],
    ...sets
      .filter(({ ablated }) => ablated)
      .flatMap((set) => [
        [`all ${set.name} heads off: ${set.heads.join(" ")}`, set.ablated],
        ...pageData.controls
          .filter(({ role }) => role === set.name)
          .map((control) => [`instead, drawn from heads of the same layers that no test marks as needed: ${control.heads.join(" ")}`, control.left]),
      ]),
  ].filter(Boolean);
  const through = (uses, who) =>
    Object.values(READER)
      .filter((reader) => uses?.through?.[reader])
      .map((reader) => [`${who} hidden from ${readerName(reader)}`, uses.through[reader]]);
  const own = through(alone, name);
  const fed = through(before, `layer ${layerOf(head) - 1}`);
  return element(
    "div",
    {},
    element("h3", {}, "What it is used for"),
    element(
      "p",
      { class: "hint" },
      `Accuracy on ${row.sequences} sequences of the task${pageData.run.steps > 0 ? `, after step ${row.step}` : ""}, when heads are off: in place of a head's blend of values stands ${PLACE[row.by]}. Hidden from one kind of reader, heads leave their mean. Looking like something is not yet being used for it; a head that costs nothing alone may be one of several that do the same.`,
    ),
    outcomes(without),
    own.length ? element("p", {}, `What ${name} wrote, hidden from one kind of reader only:`) : null,
    own.length ? outcomes(own) : null,
    fed.length ? element("p", {}, "What the layer before wrote, hidden from one kind of reader only:") : null,
    fed.length ? outcomes(fed) : null,
    overTraining(name, sets),
    accuracyByPosition(head),
    exports({ name: `without ${name}`, csv: () => table([...without, ...own, ...fed]), command: command(pageData.run.name, "ablate") }),
  );
}

function readerName(reader) {
  return reader === READER.logits ? "the unembedding (logits)" : `the ${reader} of later layers`;
}

/** Accuracy with and without the head over training. */
function overTraining(name, sets) {
  const rows = pageData.uses.filter(({ uses }) => uses.some(isHead(name)));
  if (rows.length < 2) return null;
  const line = (text, leftOf) => {
    const found = rows.map((row) => [row.step, leftOf(row)]).filter(([, left]) => left);
    return {
      name: text,
      points: found.map(([step, left]) => [step, left.accuracy]),
      band: found.map(([step, { low, high }]) => [step, low, high]),
    };
  };
  const same =
    ({ heads }) =>
    ({ uses }) =>
      uses.find((other) => other.name !== SET.layer && other.heads.join() === heads.join())?.ablated;
  return curves({
    name: `Accuracy with and without ${name} over training`,
    y: { name: "accuracy", low: 0, high: 1 },
    lines: [
      line("nothing switched off", ({ untouched }) => untouched),
      line(`${name} switched off`, ({ uses }) => uses.find(isHead(name)).ablated),
      ...sets
        .map((set) => line(`${set.heads.join(" ")} switched off`, same(set)))
        .filter(({ points }) => points.length),
    ],
  }).node;
}

/** The bars as rows of a table. */
function table(rows) {
  const row = ([name, { accuracy, low, high, loss }]) => [name, accuracy, low, high, loss];
  return [["what is off", "accuracy", "low", "high", "loss, nats"], ...rows.map(row)];
}

/** A bar for each accuracy, its interval as a line on it. */
function outcomes(rows) {
  const percent = (share) => `${(100 * share).toFixed(1)}%`;
  const row = ([name, { accuracy, low, high, loss }]) => {
    const bar = element(
      "td",
      { class: "share", title: `95 % interval ${interval(low, high)}` },
      element("span", { class: "share-bar", style: `width: ${percent(accuracy)}` }),
      element("span", { class: "interval", style: `left: ${percent(low)}; width: ${percent(high - low)}` }),
    );
    return tableRow(name, [bar, fixed(accuracy, 3), fixed(loss, 3)]);
  };
  const columns = ["", "", "accuracy", "loss, nats"];
  return dataTable("Accuracy under intervention", columns, rows.map(row), { class: "outcomes" });
}
