// Accuracy on the task position by position, with a head and without it.
import { curves } from "./curves.js";
import { element, floats } from "./elements.js";
import { command } from "./picture.js";
import { headName } from "./report_data.js";
import { PLACE } from "./vocabulary.js";

/** The figure of one head; null where accuracy without each head was not measured, or at one position only. */
export function accuracyByPosition(head) {
  const { accuracy_by_position: measured, run } = pageData;
  if (!measured) return null;
  const name = headName(head);
  const untouched = line("nothing switched off", measured.untouched);
  // At a single position there is no curve; the bars above tell it.
  if (untouched.points.length < 2) return null;
  const { node } = curves({
    name: `Accuracy by position, with and without ${name}`,
    x: { name: "position of the query" },
    y: { name: "accuracy", low: 0, high: 1 },
    lines: [
      untouched,
      line(`${name} switched off`, measured.without[head]),
      ...(measured.best === null ? [] : [{ name: "best possible", points: known(floats(measured.best)) }]),
    ],
    command: command(run.name, "positions", "--head", name),
  });
  node.id = "accuracy-by-position";
  const where = `On ${measured.sequences} validation sequences, at the positions with at least 20 scored targets. Bands: 95 % intervals. In place of the head's blend stands ${PLACE[measured.by]}.`;
  return element("div", {}, node, element("p", { class: "hint" }, where));
}

function line(name, values) {
  const numbers = floats(values);
  const rows = [...numbers.keys()].filter((at) => at % 3 === 0 && !Number.isNaN(numbers[at]));
  return {
    name,
    points: rows.map((at) => [at / 3, numbers[at]]),
    band: rows.map((at) => [at / 3, numbers[at + 1], numbers[at + 2]]),
  };
}

const known = (values) => [...values].map((value, position) => [position, value]).filter(([, value]) => !Number.isNaN(value));
