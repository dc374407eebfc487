// The live explorer: a prompt, what the model says to it, and what changes when parts of it are changed.
import { element } from "./elements.js";
import { ask, latest } from "./explorer_asks.js";
import { explorerCircuit } from "./explorer_circuit.js";
import { headSwitches } from "./explorer_heads.js";
import { patches } from "./explorer_patches.js";
import { patternStore } from "./explorer_patterns.js";
import { predictionTable } from "./explorer_predictions.js";
import { sweep } from "./explorer_sweep.js";
import { explorerWhy } from "./explorer_why.js";
import { writing } from "./explorer_writing.js";
import { heatmap } from "./heatmap.js";
import { mayAttend } from "./may_attend.js";
import { themeButton } from "./theme.js";
import { walk } from "./walk.js";
import { sourceOf } from "./walk_source.js";

/** What is asked: the controls of the page. */
const question = { prompt: pageData.prompt, off: [], by: pageData.by, patches: [] };
/** What was answered last; null while the last question has no answer. */
let answered = null;
let chosen = pageData.chosen ?? pageData.heads[0][0];
let position = 0;
let row = 0;
let map = null;
let walker = null;
let walkIsSeen = false;

const warning = () => element("p", { class: "error", role: "alert" });
const promptWarning = warning();
const headWarning = warning();
const walkWarning = warning();
const prompt = element("textarea", { rows: 3, spellcheck: "false", "aria-label": "Prompt" }, question.prompt);
const predictions = predictionTable((at) => (position = at));
const store = patternStore(pageData.heads, mayAttend(pageData.window), drawLayer, (error) => (headWarning.textContent = error.message));
const heads = headSwitches(pageData.heads, {
  onChoose: choose,
  onSwitch(off) {
    question.off = off;
    run();
  },
  onSeen: (layer) => store.want(layer),
});
const option = ([name, words]) => element("option", { value: name, selected: name === pageData.by }, `${name}: ${words}`);
const inPlace = element("select", { "aria-label": "What stands in place of a head that is off", onchange: replace }, pageData.ablations.map(option));
const patching = patches(pageData.sites, check, (all) => {
  question.patches = all;
  run();
});
const reset = element("button", { type: "button", onclick: resetAll }, "reset all changes");
const patternPlace = element("div", { class: "one-pattern" });
const why = explorerWhy();
let picked = null;
const walkPlace = element("div", {});

const isChanged = ({ off, patches: patched }) => off.length > 0 || patched.length > 0;

const run = latest(
  async (signal) => {
    const asked = structuredClone(question);
    document.body.classList.add("waiting");
    return [asked, await ask("/explore", asked, signal)];
  },
  ([asked, answer]) => answer && show(asked, answer),
  (error) => {
    document.body.classList.remove("waiting");
    explain(error);
    predictions.stale(error.message);
    heads.fade();
    patternPlace.classList.add("stale");
    answered = null;
  },
);

function show(asked, answer) {
  document.body.classList.remove("waiting");
  for (const place of [promptWarning, headWarning]) place.textContent = "";
  patching.say("");
  answered = asked;
  reset.disabled = !isChanged(asked);
  predictions.show(answer, isChanged(asked));
  heads.fade();
  patternPlace.classList.add("stale");
  store.renew(asked, answer.tokens);
  for (const layer of heads.inSight()) store.want(layer);
  choose(chosen);
}

/** The message stands beside the control that is wrong. */
function explain(error) {
  const places = { prompt: promptWarning, off: headWarning, by: headWarning };
  for (const place of Object.values(places)) place.textContent = "";
  patching.say("");
  if (["from", "site", "positions", "patches"].includes(error.field)) patching.say(error.message);
  else (places[error.field] ?? promptWarning).textContent = error.message;
}

/** Whether the model can be read with these patches: null, or what is wrong. */
async function check(all) {
  try {
    await ask("/explore", { ...question, patches: all });
    return null;
  } catch (error) {
    return error.message;
  }
}

const takeSteps = latest(
  async (signal, name) => [name, await ask("/walk", { question: answered, head: name }, signal)],
  ([name, data]) => {
    walkWarning.textContent = "";
    const [, layer, head] = /^L(\d+)H(\d+)$/.exec(name).map(Number);
    const source = sourceOf(data, layer, head, pageData.window);
    if (walker) walker.show(source);
    else {
      walker = walk(source);
      walkPlace.append(walker.node);
    }
  },
  (error) => (walkWarning.textContent = error.message),
);

const sample = latest(
  (signal) => ask("/sample", { row: ++row }, signal),
  (text) => {
    prompt.value = text;
    read();
  },
  (error) => (promptWarning.textContent = error.message),
);

function drawLayer(layer) {
  heads.draw(layer, store.of);
  if (chosen.startsWith(`L${layer}H`)) showPattern();
}

function showPattern() {
  const pattern = store.of(chosen);
  const name = answered?.off.includes(chosen) ? `${chosen} (off: its values are not used)` : chosen;
  patternTitle.textContent = `Where ${name} looks`;
  patternPlace.classList.remove("stale");
  if (map) map.show(pattern);
  else {
    map = heatmap(pattern, { onPick: (place) => why.at(answered?.prompt, chosen, (picked = place)) });
    patternPlace.append(map.node);
  }
  why.at(answered?.prompt, chosen, picked);
}

function choose(name) {
  chosen = name;
  heads.choose(name);
  if (!answered) return;
  if (store.has(name)) showPattern();
  else store.want(Number(/^L(\d+)/.exec(name)[1]));
  if (walkIsSeen) takeSteps(name);
}

/** The head that was chosen elsewhere on the page, with its pattern. */
function showHead(name) {
  choose(name);
  document.getElementById("heads").scrollIntoView();
}

function read() {
  question.prompt = prompt.value;
  run();
}

function replace() {
  question.by = inPlace.value;
  run();
}

function resetAll() {
  question.off = [];
  heads.off([]);
  question.patches = [];
  patching.clear();
  run();
}

prompt.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey) {
    event.preventDefault();
    read();
  }
});

const patternTitle = element("h3", {}, `Where ${chosen} looks`);
const section = (id, title, ...children) => element("section", { id }, element("h2", {}, title), ...children);
const walkSection = section("walk", "The walk: the chosen head, step by step", walkWarning, walkPlace);

const page = document.getElementById("page");
page.classList.add("wide");
page.append(
  element("header", {}, element("h1", {}, `${pageData.name}, live`), themeButton()),
  element("p", { class: "hint" }, `Task ${pageData.task}, at most ${pageData.most_tokens} tokens. Some tokens: ${pageData.some_tokens.join(" ")}`),
  element(
    "div",
    { class: "bench" },
    element(
      "div",
      { class: "bench-side" },
      prompt,
      element("div", { class: "controls" }, element("button", { type: "button", onclick: read }, "read it"), element("button", { type: "button", onclick: () => sample() }, "another prompt of the task"), reset),
      promptWarning,
      section("predictions", "What comes next", element("p", { class: "hint" }, "Each bar is the probability of a token after those before it. Click a token to see what may come after it."), predictions.node),
    ),
    element(
      "div",
      {},
      section("heads", "The heads", element("p", { class: "hint" }, "Choose a head to see where it looks. In place of the blend of values of a head that is off stands:"), element("div", { class: "controls" }, inPlace), headWarning, heads.node, patternTitle, patternPlace, why.node),
    ),
  ),
  section("patch", "Activations of another prompt", element("p", {}, "While the model reads the prompt, the activations at a place are replaced by those of the other prompt at the same place. Both prompts need the same number of tokens."), patching.node),
  section("sweep", "Which layer, which position", element("p", {}, "Every layer at every position is patched, one at a time, in the model as it is. The answer is the likeliest token after the chosen position."), sweep(pageData.sweeps, () => prompt.value, () => position)),
  pageData.edges ? section("circuit", "Through which edges", element("p", {}, "The edges that carry the continuation of what came before, in the model as it is, between pairs of prompts made from random tokens that come back. What differs between the prompts:"), explorerCircuit(pageData.edges, pageData.name, showHead)) : "",
  section("writing", "What the model writes on", writing(() => ({ ...question, prompt: prompt.value }))),
  walkSection,
);
// The walk holds many numbers: it is asked for once somebody is there to see it.
new IntersectionObserver(([{ isIntersecting }]) => {
  walkIsSeen = isIntersecting;
  if (walkIsSeen && answered) takeSteps(chosen);
}).observe(walkSection);
run();
