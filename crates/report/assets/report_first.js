// The first screen: which head does what, since when, how surely, at what cost.
import { element, fixed, interval, withMinus } from "./elements.js";
import { isKnown, term } from "./glossary.js";
import { headGrid } from "./head_grid.js";
import { headPanels } from "./head_panels.js";
import { command } from "./picture.js";
import { relationsFigure } from "./report_relations.js";
import { scoreChoice } from "./report_training.js";
import { themeButton } from "./theme.js";
import { PLACE } from "./vocabulary.js";

const { run, finding, heads, first: groups, uses } = pageData;
/** More panels than this are not looked at. */
const MOST_PANELS = 12;
/** Of more kinds of questions the range is told; the section on the run has all. */
const MOST_KINDS = 3;

/** A smaller fall of accuracy that is not sure is no change. */
const LEAST_SEEN = 0.02;

/** The heads of the lines, as indices into the list of heads. */
const listed = groups
  .flatMap((group) => group.heads.map(({ head }) => heads.findIndex(([name]) => name === head)))
  .sort((a, b) => a - b);

export function firstSection(state) {
  const [sentence] = finding;
  return element(
    "section",
    { id: "first" },
    element(
      "header",
      {},
      element(
        "div",
        {},
        element("h1", {}, `${run.name}: what its heads ${run.steps > 0 ? "learned" : "do"}`),
        element("p", { class: "soft" }, `${run.task}. ${run.model}.${run.config ? ` Seed ${run.seed}.` : ""}`, lesson()),
      ),
      themeButton(),
    ),
    element("p", { class: "finding" }, withMinus(sentence)),
    facts(),
    pageData.relations.length ? relationsFigure(state) : null,
    element(
      "div",
      { class: "two first" },
      element("div", {}, lines(state), rest()),
      beside(state),
    ),
  );
}

/** A link to the page that is written beside the report. Opened from the live page, the report is a blob and has no neighbours. */
function lesson() {
  return location.protocol === "blob:" || !run.config ? null : [" New to attention? ", element("a", { href: "learn.html" }, "How it works")];
}

/** What came out, and what it is read against. */
function facts() {
  const fact = (word, text, value, hint) =>
    element("div", {}, element("dt", {}, term(word, text)), element("dd", {}, value, element("small", {}, hint)));
  const on = [`on ${run.validation} `, term("validation", "validation sequences")];
  return element(
    "dl",
    { class: "facts" },
    fact("accuracy", "accuracy", fixed(run.accuracy, 3), on),
    run.best_accuracy === null ? null : fact("best accuracy", "best possible", share(run.best_accuracy), "accuracy"),
    fact("guessing", "guessing", run.chance < 0.0005 ? "<0.001" : fixed(run.chance, 3), "accuracy"),
    fact("loss", "loss", fixed(run.loss, 3), "nats"),
    run.floor === null ? null : fact("best possible", "best possible", fixed(run.floor, 3), "nats"),
    ...answers(fact),
  );
}

/** A share that is written as 1 only if it is. */
function share(value) {
  return value < 1 && value >= 0.9995 ? ">0.999" : fixed(value, 3);
}

/** The answers to the task's own questions; of many kinds, from the worst to the best. */
function answers(fact) {
  const kinds = Object.entries(run.breakdown);
  if (kinds.length <= MOST_KINDS) {
    return kinds.map(([kind, { accuracy, count }]) => fact(isKnown(kind) ? kind : "questions", kind, fixed(accuracy, 3), `of ${count} questions`));
  }
  const shares = kinds.map(([, { accuracy }]) => accuracy);
  const range = `${fixed(Math.min(...shares), 3)}–${fixed(Math.max(...shares), 3)}`;
  return [fact("questions", `${kinds.length} kinds of questions`, range, "right")];
}

/** A line for each head that matters; where several look alike, one for all together. */
function lines(state) {
  const before = uses.at(-1)?.untouched;
  const nothing = before ? ", and accuracy does not surely fall without any one head" : "";
  if (!groups.length) return element("p", {}, `No head holds a role${nothing}.`);
  const hasScores = groups.some((group) => group.heads.some(({ score }) => score));
  const hasForming = groups.some((group) => group.heads.some(({ formed }) => formed));
  const hasReaders = uses.at(-1)?.uses.some(({ through }) => Object.keys(through ?? {}).length);
  const columns = [
    ["head"],
    ["looks like", term("looks like")],
    hasForming ? ["formed, steps", term("formed", "formed, steps")] : null,
    hasScores ? ["score", element("span", {}, "score (", term("interval", "95 %"), "; ", term("evenly", "even"), ")")] : null,
    before ? ["accuracy without it", element("span", {}, "accuracy ", term("off", "without it"))] : null,
    hasReaders ? ["used as", term("used as")] : null,
  ].filter(Boolean);
  const names = columns.map(([name]) => name);
  const cell = (name, ...content) => {
    const isEmpty = content.every((part) => part === null || part === "");
    const attributes = { "data-name": name, class: isEmpty ? "empty" : null };
    return names.includes(name) ? element("td", attributes, ...content) : null;
  };
  const rows = groups.flatMap((group) => [
    ...group.heads.map((line) => headRow(line, group, before, cell, state)),
    group.more
      ? element("tr", { class: "all" }, element("td", { colspan: names.length }, `and ${group.more} more that look like ${group.role}`))
      : null,
    group.together ? togetherRow(group, before, cell) : null,
  ]);
  const header = columns.map(([name, shown]) => element("th", { scope: "col" }, shown ?? name));
  return element(
    "table",
    { class: "lines" },
    element("thead", {}, element("tr", {}, header)),
    element("tbody", {}, rows.filter(Boolean)),
  );
}

function headRow(line, { role }, before, cell, state) {
  const at = heads.findIndex(([name]) => name === line.head);
  const { score, formed, positions, without, beside_others: beside } = line;
  const go = element(
    "button",
    { type: "button", class: "plain", title: `Show the pattern of ${line.head}`, onclick: () => state.lookAt(at) },
    line.head,
  );
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, go),
    cell("looks like", term(role), where(at, role, positions), line.is_sure ? null : " (not sure)"),
    cell("formed, steps", formed ? `${formed[0]}–${formed[1]}` : null),
    cell(
      "score",
      score ? element("b", {}, fixed(score.value, 3)) : null,
      score ? element("small", {}, ` (${interval(score.low, score.high)}; ${fixed(score.null, 3)})`) : null,
    ),
    cell("accuracy without it", ...cost(without, before)),
    cell("used as", ...(without?.fall === null ? [inWords(beside)] : readers(without))),
  );
}

/** The positions at which a head surely holds its role; they matter most where it does not hold it as a whole. */
function where(at, role, positions) {
  if (positions) return ` at positions ${positions[0]}–${positions[1]}`;
  const own = (pageData.positions[at]?.ranges ?? []).filter((range) => range.role === role);
  if (!own.length) return null;
  const text = own.map(({ first, last }) => `${first}–${last}`).join(", ");
  return element("small", { title: "positions of the query at which it surely holds the role" }, ` ${text}`);
}

/** What a head that costs nothing alone is worth where the others of its role are off. */
function inWords(beside) {
  if (!beside) return null;
  if (beside === "PatternOnly") return term("pattern only");
  return element("span", {}, term("backup"), element("small", {}, ` −${fixed(beside.Backup, 2)}`));
}

function togetherRow({ role, together, heads: inGroup, more }, before, cell) {
  const count = together.heads.length;
  const control = worstControl(role);
  const beside = control
    ? element("small", {}, " ", term("control"), ` leaves ${fixed(control.left.accuracy, 3)}`)
    : element("small", {}, " no ", term("control"));
  const own = inGroup.filter(({ positions }) => !positions).map(({ head }) => head);
  const names = more ? `all ${count}` : count === own.length ? `all ${count}` : together.heads.join(" ");
  return element(
    "tr",
    { class: "all" },
    element("th", { scope: "row" }, names),
    cell("looks like", `${role}, together`),
    cell("formed, steps", ""),
    cell("score", ""),
    cell("accuracy without it", ...cost(together, before), beside),
    cell("used as", ...readers(together)),
  );
}

/** The draw of other heads without which most is lost. */
function worstControl(role) {
  const own = pageData.controls.filter((control) => control.role === role);
  return own.sort((a, b) => a.left.accuracy - b.left.accuracy)[0] ?? null;
}

function cost(without, before) {
  if (!without || !before) return ["–"];
  const ends = `${fixed(without.accuracy, 3)}: 95 % interval ${interval(without.low, without.high)}`;
  if (without.fall === null) {
    const isLess = before.accuracy - without.accuracy >= LEAST_SEEN;
    return [element("span", { title: ends }, `${fixed(without.accuracy, 3)} `), element("small", {}, isLess ? "not surely less" : "no change")];
  }
  return [`${fixed(before.accuracy, 3)} → `, element("b", { title: ends }, fixed(without.accuracy, 3))];
}

function readers(without) {
  if (!without || without.fall === null) return [null];
  if (!without.through.length) return [term("all", "no single one")];
  return without.through.flatMap((reader, at) => (at ? [", ", term(reader)] : [term(reader)]));
}

/** The heads without a line, and where the numbers come from. */
function rest() {
  const named = groups.reduce((count, group) => count + group.heads.length + group.more, 0);
  const others = heads.length - named;
  const row = uses.at(-1);
  const isPartial = groups.some((group) => group.heads.some(({ without }) => !without));
  const found = run.config === "" ? "no role" : "nothing found";
  const which = others === 1 ? "other head" : `other ${others} heads`;
  return element(
    "div",
    {},
    groups.length && others > 0 ? element("p", {}, `The ${which}: ${pageData.relations.length ? "no role on the probe, and nothing is lost without any one" : found}.`) : null,
    row
      ? element(
          "p",
          { class: "hint" },
          "Scores on the ",
          term("probe"),
          `. Accuracy without heads on ${row.sequences} of the validation sequences, where it is ${fixed(row.untouched.accuracy, 3)} untouched; `,
          `a head that is off has ${PLACE[row.by]} in its place.${isPartial ? " –: not measured for this head alone." : ""} `,
          element("code", {}, command(run.name, "heads")),
        )
      : null,
  );
}

/** How the heads formed; of a model that was not trained here, how they are. */
function beside(state) {
  if (pageData.steps.length > 1) return panels(state);
  return element(
    "div",
    {},
    scoreChoice(state),
    element("p", { class: "hint" }, "Every head's ", term("pattern"), ". A click shows it below."),
    headGrid(state),
  );
}

function panels(state) {
  const isWhole = heads.length <= MOST_PANELS;
  const shown = isWhole ? [...heads.keys()] : listed.length ? listed.slice(0, MOST_PANELS) : [...heads.keys()].slice(0, MOST_PANELS);
  const words = isWhole ? null : element("p", { class: "hint" }, `${shown.length} of ${heads.length} heads: those of the lines.`);
  return element("div", {}, headPanels(state, shown, command(run.name, "scores", "--png", "scores.png")), words);
}

/** What was found, in whole sentences. */
export function sentencesSection() {
  const [, ...more] = finding;
  if (!more.length) return null;
  return element(
    "section",
    { id: "words" },
    element("h2", {}, "In words"),
    finding.map((sentence) => element("p", {}, withMinus(sentence))),
  );
}
