// The walk through one head: stage by stage, with the numbers that made each number.
import { afterFrame, choice, element, short } from "./elements.js";
import { matrix } from "./matrix.js";
import { walkStages } from "./walk_stages.js";

/**
 * Steps through the stages of `source` (see walk_stages.js). A click on a cell of the result shows what it was made of;
 * on a cell of what goes in, the stage that made it. A click on a token marks its row in every matrix. `show(source)`
 * changes the head and keeps stage and token.
 */
export function walk(source, token = source.tokens.length - 1) {
  const node = element("div", { class: "walk" });
  const title = element("div", { class: "stage-title" });
  const says = element("p");
  const equation = element("div", { class: "equation-row" });
  const explained = element("div", { class: "explained" });
  const body = element("div", { class: "stage-body" }, equation, explained);
  const strip = element("div", { class: "strip", role: "group", "aria-label": "Query token" });
  const tabs = element("div", {});
  const state = { source, stages: walkStages(source), at: 0, row: token, column: null };
  let stageChoice = null;
  let drawn = [];

  function show(next) {
    const hasOtherTokens = next.tokens !== state.source.tokens;
    state.source = next;
    state.stages = walkStages(next);
    state.at = Math.min(state.at, state.stages.length - 1);
    state.row = Math.min(state.row, next.tokens.length - 1);
    state.column = null;
    if (hasOtherTokens) list();
    paint();
  }

  /** The tokens and the stages to choose from. */
  function list() {
    const button = (text, at) => element("button", { type: "button", title: `token ${at}`, onclick: () => choose(at) }, short(text));
    strip.replaceChildren(...state.source.tokens.map(button));
    const options = state.stages.map(({ title }, at) => ({ value: at, text: title }));
    stageChoice = choice("Stage", options, state.at, (at) => go(at));
    tabs.replaceChildren(stageChoice.node);
  }

  function go(at, row = state.row, column = null) {
    Object.assign(state, { at, row, column });
    paint();
  }

  /** The stage and its matrices at once, how the chosen number was made a frame later. */
  function paint() {
    const stage = state.stages[state.at];
    const last = state.stages.length - 1;
    const step = (text, by) =>
      element(
        "button",
        {
          type: "button",
          class: "step",
          disabled: state.at + by < 0 || state.at + by > last,
          onclick: () => go(state.at + by),
        },
        text,
      );
    drawn = stage.parts.map((part) => (typeof part === "string" ? null : drawPart(part)));
    title.replaceChildren(step("← back", -1), element("h4", {}, `${state.at + 1} of ${last + 1}: ${stage.title}`), step("next →", 1));
    says.textContent = stage.says;
    equation.replaceChildren(
      ...stage.parts.map((part, i) => drawn[i]?.node ?? element("span", { class: "sign", "aria-hidden": "true" }, part)),
    );
    stageChoice.mark(state.at);
    state.column ??= mostTelling(stage, state.row);
    mark();
    afterFrame(explain);
  }

  /** Another token: its row is marked everywhere. */
  function choose(row) {
    state.row = row;
    state.column = mostTelling(state.stages[state.at], row);
    mark();
    explain();
  }

  function drawPart(part) {
    const { tokens, directions } = state.source;
    const names = (axis) => {
      if (part.tokens === axis || part.tokens === "both") return tokens;
      return part.directions === axis ? (directions ?? undefined) : undefined;
    };
    const [rowNames, columnNames] = [names("rows"), names("columns")];
    const labels = (of) => (of === directions ? of?.map(shortDirection) : of);
    const axes = { rowNames, columnNames, rowLabels: labels(rowNames), columnLabels: labels(columnNames) };
    return matrix({ ...part, ...axes }, (place) => {
      if (!place) return;
      const { row, column } = place;
      if (part.role === "result") {
        if (row === null) return;
        Object.assign(state, { row, column: column ?? mostTelling(state.stages[state.at], row) });
        mark();
        explain();
      } else if (part.made && row !== null && column !== null) {
        const at = state.stages.findIndex(({ id }) => id === part.made);
        go(at, ...(part.turned ? [column, row] : [row, column]));
      } else if (row !== null && part.tokens !== "none") {
        choose(row);
      }
    });
  }

  /** Marks the chosen token, and in each matrix what the chosen number is made of. */
  function mark() {
    const { row, column } = state;
    [...strip.children].forEach((button, at) => button.setAttribute("aria-pressed", String(at === row)));
    state.stages[state.at].parts.forEach((part, i) => {
      if (!drawn[i]) return;
      if (part.role === "left") drawn[i].highlight([row]);
      else if (part.role === "right") drawn[i].highlight(part.tokens === "rows" ? [row] : [], [column]);
      else drawn[i].highlight([row], [column]);
    });
  }

  /** Shows how the chosen number was made. */
  function explain() {
    explained.replaceChildren(state.stages[state.at].explain(state.row, state.column));
    reveal(explained.querySelector(".scroll"));
  }

  const stage = element("div", { class: "stage", "aria-live": "polite" }, title, says, body);
  node.append(element("p", { class: "hint" }, "Query token:"), strip, tabs, stage);
  list();
  paint();
  return { node, show, choose, go: (id) => go(state.stages.findIndex((stage) => stage.id === id)) };
}

/** `indi…:10`: of a direction's name as much as shows its value. */
function shortDirection(name) {
  const at = name.lastIndexOf(":");
  if (name.length <= 8 || at < 0) return name;
  const value = name.slice(at);
  return `${name.slice(0, Math.max(7 - value.length, 1))}…${value}`;
}

/** The cell of a row to begin with: the largest in size among those shown. */
function mostTelling(stage, row) {
  const result = stage.parts.find((part) => part.role === "result");
  const size = (column) => (result.shows && !result.shows(row, column) ? -1 : Math.abs(result.table.at(row, column)));
  return Array.from({ length: result.table.columns }, (_, column) => column).reduce(
    (best, column) => (size(column) > size(best) ? column : best),
    0,
  );
}

/** Scrolls a list of terms to the one that matters most. */
function reveal(list) {
  const row = list?.querySelector(".here");
  if (row) list.scrollTop = row.offsetTop - list.clientHeight / 2;
}
