// Tasks that know which word depends on which: how each head follows each relation, and a sentence with its pairs.
import { inkOn, weightColour } from "./colour.js";
import { element, fixed, inSightFirst, interval, visible } from "./elements.js";
import { term } from "./glossary.js";
import { command, exports } from "./picture.js";
import { firstOfTask, headName, relationsOf, sentenceOf } from "./report_data.js";
import { aboveNulls, bestHead, clearestRelation, highestNull, isFollowed, isSurelyAbove } from "./report_state.js";

const { relations, heads, run } = pageData;
/** Heads that a matrix has columns for; of more, those that follow a relation most clearly. */
const MOST_COLUMNS = 16;

/** Of more heads only the number is told. */
const MOST_LOST = 6;

/** What the scores' names say: the weight from the word, or from the word before it, to its source. */
export function relationInWords(name) {
  const plain = name.replace(/^next /, "");
  const [dependent, source] = plain.split("→");
  if (!source) return name;
  return plain === name
    ? `from the ${dependent} to its ${source}`
    : `from the word before the ${dependent} to the ${source}: what predicts it`;
}

/** The matrix beside a sentence. */
export function relationsFigure(state) {
  return element("div", { class: "two relations" }, element("div", {}, headLines(state), matrix(state)), sentence(state));
}

/**
 * A line for each head without which surely fewer answers are right, and for each that gives a relation's source half of
 * its attention: what it follows, since when, how surely, and what goes wrong without it.
 */
function headLines(state) {
  const { answers_lost: lost } = pageData;
  const listed = lost.map(({ head }) => heads.findIndex(([name]) => name === head)).slice(0, MOST_LOST);
  for (const head of heads.keys()) if (!listed.includes(head) && followsAny(head)) listed.push(head);
  if (!listed.length) return null;
  const more = lost.length > MOST_LOST ? ` ${lost.length - MOST_LOST} more heads cost less.` : "";
  const columns = [
    ["head", "head"],
    ["follows", "follows most clearly"],
    ["since", term("since", "since, steps")],
    ["weight", element("span", {}, "weight (", term("interval", "95 %"), "; ", term("highest null"), ")")],
    lost.length ? ["without it", element("span", {}, "answers right ", term("off", "without it"), " (", term("interval", "95 %"), ")")] : null,
  ].filter(Boolean);
  return element(
    "figure",
    { id: "answers" },
    element(
      "table",
      { class: "lines" },
      element("thead", {}, element("tr", {}, columns.map(([, shown]) => element("th", { scope: "col" }, shown)))),
      element("tbody", {}, listed.map((head) => headLine(head, state))),
    ),
    lost.length ? element("p", { class: "hint" }, `Answers on half of the validation sequences; a head that is off has its mean in its place.${more}`) : null,
  );
}

function headLine(head, state) {
  const name = headName(head);
  const relation = relations.find((each) => each.name === clearestRelation(head));
  const seen = relation.heads[head];
  const isSure = isSurelyAbove(seen, relation.uniform);
  const choose = () => state.toRelation(head, relation.name);
  const cell = (column, ...content) => element("td", { "data-name": column, class: content[0] === null ? "empty" : null }, ...content);
  const others = relations.filter((each) => each !== relation && each.heads[head] && isFollowed(each.heads[head], each.uniform));
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, element("button", { type: "button", class: "plain", title: `Show the pattern of ${name}`, onclick: choose }, name)),
    cell("follows", isSure ? element("span", { class: "whole-word" }, relation.name) : "no relation surely", others.length ? element("small", {}, `, ${others.map((other) => `${other.name} ${fixed(other.heads[head].value, 2)}`).join(", ")}`) : null),
    cell("since, steps", seen.since ? `${seen.since[0]}–${seen.since[1]}` : null),
    cell("weight", ...(isSure ? [element("b", {}, fixed(seen.value, 2)), element("small", {}, ` (${fixed(seen.low, 2)}–${fixed(seen.high, 2)}; ${fixed(highestNull(seen, relation.uniform), 2)})`)] : [null])),
    pageData.answers_lost.length ? cell("without it", ...answersWithout(name)) : null,
  );
}

/** The kind of questions that suffers most without a head. */
function answersWithout(name) {
  const found = pageData.answers_lost.find(({ head }) => head === name);
  if (!found) return [element("small", {}, "no change")];
  const { kind, untouched, without, interval: { low, high }, count } = found;
  return [
    element("span", { class: "whole-word" }, `${fixed(untouched, 3)} → `, element("b", {}, fixed(without, 3))),
    ` ${kind}`,
    element("small", {}, ` (${interval(low, high)}), ${count} questions`),
  ];
}

/** Whether a head gives the source of any relation at least half of its attention. */
const followsAny = (head) => relations.some(({ uniform, heads: seen }) => seen[head] && isFollowed(seen[head], uniform));

function matrix(state) {
  const columns = shownHeads();
  const cells = new Map();
  const cell = (relation, head) => {
    const seen = relation.heads[head];
    if (!seen) return element("td", {}, "–");
    const nulls = `even attention ${fixed(relation.uniform, 3)}, same distances ${fixed(seen.distance, 3)}, shuffled ${fixed(seen.shuffled, 3)}`;
    const button = element(
      "button",
      {
        type: "button",
        "aria-pressed": "false",
        style: isSurelyAbove(seen, relation.uniform) ? shade(aboveNulls(seen, relation.uniform)) : null,
        title: `${headName(head)}, ${relation.name}: ${fixed(seen.value, 3)} (${interval(seen.low, seen.high)}); ${nulls}`,
        onclick: () => state.toRelation(head, relation.name),
      },
      fixed(seen.value, 2),
    );
    cells.set(`${relation.name} ${head}`, button);
    return element("td", {}, button);
  };
  /** From paper to the accent: a small distance is pale. */
  const shade = (above) => `background: color-mix(in srgb, var(--accent) ${(12 + 88 * above).toFixed(0)}%, var(--paper)); color: var(${above > 0.62 ? "--paper" : "--ink"})`;
  const highest = (relation, of) => {
    const found = relation.heads.map((seen) => seen?.[of]).filter((value) => typeof value === "number");
    return found.length ? fixed(Math.max(...found), 2) : "–";
  };
  const rows = relations.map((relation) =>
    element(
      "tr",
      {},
      element("th", { scope: "row", title: relationInWords(relation.name) }, relation.name),
      columns.map((head) => cell(relation, head)),
      element("td", { class: "null" }, fixed(relation.uniform, 2)),
      element("td", { class: "null" }, highest(relation, "distance")),
      element("td", { class: "null" }, highest(relation, "shuffled")),
      element("td", { class: "null wide-only" }, String(relation.pairs)),
    ),
  );
  let marked = null;
  const mark = () => {
    marked?.setAttribute("aria-pressed", "false");
    marked = cells.get(`${state.score} ${state.head}`);
    marked?.setAttribute("aria-pressed", "true");
  };
  state.onHead.push(mark);
  state.onScore.push(mark);
  const header = [
    "relation",
    ...columns.map(headName),
    term("evenly", "even"),
    term("distance"),
    term("shuffled"),
    element("span", { class: "wide-only" }, "pairs"),
  ];
  return element(
    "figure",
    { id: "relations", class: "relation-matrix" },
    element("figcaption", {}, "Weight from a word to the word it depends on, at the end. Coloured where it is surely above every null, by how far. “next”: from the word before."),
    element(
      "div",
      { class: "scroll whole", tabindex: "0", role: "region", "aria-label": "Relations and heads" },
      element(
        "table",
        { class: "dense matrix" },
        element("thead", {}, element("tr", {}, header.map((name) => element("th", { scope: "col" }, name)))),
        element("tbody", {}, rows),
      ),
    ),
    columns.length < heads.length
      ? element("p", { class: "hint" }, `${columns.length} of ${heads.length} heads, those that follow a relation most clearly.`)
      : null,
    exports({ name: "relations", csv: table, command: command(run.name, "relations") }),
    element("p", { class: "hint" }, "The command chooses the head of a relation on one half of the sequences and measures it on the other."),
  );
}

function shownHeads() {
  const all = [...heads.keys()];
  if (all.length <= MOST_COLUMNS) return all;
  const clearest = (head) =>
    Math.max(...relations.map(({ uniform, heads: seen }) => (seen[head] ? aboveNulls(seen[head], uniform) : -1)));
  const chosen = all.sort((a, b) => clearest(b) - clearest(a)).slice(0, MOST_COLUMNS);
  return chosen.sort((a, b) => a - b);
}

/** A sentence of the task: the pairs of a relation, each with the weight that the head on show gives it. */
function sentence(state) {
  const { tokens } = sentenceOf(firstOfTask) ?? { tokens: [] };
  const pairs = relationsOf(firstOfTask);
  if (!tokens.length || !pairs.length) return null;
  const caption = element("figcaption", {});
  const words = element("p", { class: "sentence" });
  const list = element("ul", { class: "pairs" });
  function paint() {
    const relation = relations.some(({ name }) => name === state.score) ? state.score : clearestRelation(bestHead);
    const plain = relation.replace(/^next /, "");
    const isNext = plain !== relation;
    const own = pairs.filter(([name]) => name === plain);
    const queryOf = (dependent) => (isNext ? dependent - 1 : dependent);
    const weight = weightsAtEnd(state.head);
    caption.replaceChildren(
      `${headName(state.head)} on a sentence of the task: ${relationInWords(relation)}. `,
      element("span", { class: "ring" }, "ringed"),
      ": the pairs that the grammar knows.",
    );
    words.replaceChildren(
      ...tokens.flatMap((token, at) => {
        const [isDependent, isSource] = [own.some(([, from]) => from === at), own.some(([, , to]) => to === at)];
        const kind = [isDependent ? "dependent" : null, isSource ? "source" : null].filter(Boolean).join(" ");
        return [element("span", { class: kind || null }, visible(token)), " "];
      }),
    );
    const item = ([, dependent, source]) => {
      const query = queryOf(dependent);
      const found = weight(query, source);
      const colour = weightColour(found);
      const [from, to] = [visible(tokens[query]), visible(tokens[source])];
      return element(
        "li",
        {},
        element("span", { class: "ring" }, from),
        ` ${query} → `,
        element("span", { class: "ring" }, to),
        ` ${source} `,
        element("b", { class: "weight", style: `background: rgb(${colour.join(" ")}); color: ${inkOn(colour)}` }, fixed(found, 2)),
      );
    };
    const asked = own.filter(([, dependent, source]) => queryOf(dependent) > source);
    const others = own.length - asked.length;
    list.replaceChildren(
      ...(asked.length ? asked.map(item) : [element("li", {}, "This sentence has no such pair.")]),
      others > 0 ? element("li", {}, element("small", {}, `Of ${others} more pairs the source is the word before.`)) : "",
    );
  }
  const weightsAtEnd = (head) => sentenceOf(firstOfTask).weightsOf(head);
  const figure = element("figure", { class: "gold" }, caption, words, list);
  const repaint = inSightFirst(figure, paint);
  state.onHead.push(repaint);
  state.onScore.push(repaint);
  return figure;
}

function table() {
  const rows = [["relation", "head", "weight", "low", "high", "even attention", "same distances", "shuffled", "pairs"]];
  for (const { name, pairs, uniform, heads: seen } of relations) {
    seen.forEach((found, head) => {
      if (found) rows.push([name, headName(head), found.value, found.low, found.high, uniform, found.distance, found.shuffled, pairs]);
    });
  }
  return rows;
}
