// The report: its sections, and what they share.
import { element } from "./elements.js";
import { patternSteps } from "./report_data.js";
import { headSection } from "./report_heads.js";
import { programSection } from "./report_program.js";
import { bestHead, findingSection, runSection } from "./report_run.js";
import { streamSection } from "./report_stream.js";
import { trainingSection } from "./report_training.js";
import { walkSection } from "./report_walk.js";

const { steps } = pageData;

/** What is on show; sections hear of a change through the lists. */
const state = {
  head: bestHead,
  step: steps.at(-1) ?? patternSteps.at(-1) ?? 0,
  sequence: 0,
  onHead: [],
  onStep: [],
  onSequence: [],
  choose: (head) => change("head", head, state.onHead),
  toStep: (step) => change("step", step, state.onStep),
  toSequence: (sequence) => change("sequence", sequence, [...state.onSequence, ...state.onStep]),
};

function change(name, value, listeners) {
  state[name] = value;
  for (const listener of listeners) listener();
}

const links = [
  ["program", "the program"],
  ["training", "over training"],
  ["head", "one head"],
  ["walk", "the walk"],
  ["stream", "residual stream"],
  ["run", "the run"],
];
const sections = [
  findingSection(),
  programSection(state),
  steps.length ? trainingSection(state) : null,
  headSection(state),
  walkSection(state),
  streamSection(),
  runSection(),
].filter(Boolean);
const there = links.filter(([id]) => sections.some((section) => section.id === id));
sections.splice(
  1,
  0,
  element(
    "nav",
    { "aria-label": "Parts of this page" },
    there.map(([id, text]) => element("a", { href: `#${id}` }, text)),
  ),
);
document.getElementById("page").append(...sections);
state.toStep(state.step);
state.choose(state.head);
