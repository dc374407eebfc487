// The live explorer: a prompt, what the model says to it, and what changes when parts of it are changed.
import { bytes, element } from "./elements.js";
import { ask, latest } from "./explorer_asks.js";
import { headSwitches, patches, predictionTable } from "./explorer_changes.js";
import { explorerWhy } from "./explorer_why.js";
import { heatmap } from "./heatmap.js";
import { mayAttend } from "./may_attend.js";
import { themeButton } from "./theme.js";
import { walk } from "./walk.js";
import { sourceOf } from "./walk_source.js";

const question = { prompt: pageData.prompt, off: [], by: pageData.by, patches: [] };
let chosen = pageData.heads.at(-1)[0];
let answer = null;
let row = 0;
let map = null;
let walker = null;

const say = element("p", { class: "error", role: "alert" });
const tell = (message) => (say.textContent = message);
const prompt = element("textarea", { rows: 3, spellcheck: "false", "aria-label": "Prompt" }, question.prompt);
const predictions = predictionTable();
const heads = headSwitches(pageData.heads, choose, (name, isOff) => {
  question.off = isOff ? [...question.off, name] : question.off.filter((other) => other !== name);
  run();
});
const inPlace = element(
  "select",
  {
    "aria-label": "What stands in place of a head that is off",
    onchange: () => {
      question.by = inPlace.value;
      run();
    },
  },
  pageData.ablations.map(([name, words]) => element("option", { value: name, selected: name === pageData.by }, `${name}: ${words}`)),
);
const patternPlace = element("div", { class: "one-pattern" });
const why = explorerWhy();
let picked = null;
const walkPlace = element("div", {});

const attends = mayAttend(pageData.window);

/** A head's pattern in the last answer. */
function patternOf(name) {
  const { tokens, patterns } = answer;
  const weights = bytes(patterns.find(([head]) => head === name)[1]);
  return { name, tokens, attends, weight: (query, key) => weights[query * tokens.length + key] / 255 };
}

const run = latest(() => ask("/explore", question), (found) => {
  answer = found;
  predictions.show(found);
  showHead();
}, tell);

const takeSteps = latest(async () => [chosen, await ask("/walk", { question, head: chosen })], ([name, data]) => {
  const [, layer, head] = /^L(\d+)H(\d+)$/.exec(name).map(Number);
  const source = sourceOf(data, layer, head, pageData.window);
  if (walker) walker.show(source);
  else {
    walker = walk(source);
    walkPlace.append(walker.node);
  }
}, tell);

const sample = latest(() => ask("/sample", { row: ++row }), (text) => {
  prompt.value = text;
  read();
}, tell);

function showHead() {
  heads.show(patternOf, chosen);
  if (map) map.show(patternOf(chosen));
  else {
    map = heatmap(patternOf(chosen), { onPick: (place) => why.at(question.prompt, chosen, (picked = place)) });
    patternPlace.append(map.node);
  }
  why.at(question.prompt, chosen, picked);
  takeSteps();
}

function choose(name) {
  chosen = name;
  if (answer) showHead();
}

function read() {
  question.prompt = prompt.value;
  run();
}

prompt.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey) {
    event.preventDefault();
    read();
  }
});

const section = (id, title, ...children) => element("section", { id }, element("h2", {}, title), ...children);

document.getElementById("page").append(
  element("header", {}, element("h1", {}, `${pageData.name}, live`), themeButton()),
  element("p", { class: "hint" }, `Task ${pageData.task}, at most ${pageData.most_tokens} tokens. Some tokens: ${pageData.some_tokens.join(" ")}`),
  prompt,
  element("div", { class: "controls" }, element("button", { type: "button", onclick: read }, "read it"), element("button", { type: "button", onclick: () => sample() }, "another prompt of the task")),
  say,
  section("predictions", "What comes next", element("p", {}, "The likeliest tokens after the chosen position. Click a token to choose another position."), predictions.node),
  section("heads", "The heads", element("p", {}, "Choose a head to see it below. In place of the blend of values of a head that is off stands:"), element("div", { class: "controls" }, inPlace), heads.node, element("div", { class: "two" }, patternPlace, why.node)),
  section("patch", "Activations of another prompt", element("p", {}, "While the model reads the prompt, the activations at a place are replaced by those it has there when it reads the other prompt. Both need the same number of tokens."),
    patches(pageData.sites, (all) => {
      question.patches = all;
      run();
    })),
  section("walk", "The walk: the chosen head, step by step", walkPlace),
);
run();
