// The report: its sections in their order, and the navigation that stays.
import { afterFrame, element } from "./elements.js";
import { circuitSection } from "./report_circuit.js";
import { firstSection, sentencesSection } from "./report_first.js";
import { headSection } from "./report_heads.js";
import { positionsSection } from "./report_positions.js";
import { programSection } from "./report_program.js";
import { runSection } from "./report_run.js";
import { reportState } from "./report_state.js";
import { streamSection } from "./report_stream.js";
import { trainingSection } from "./report_training.js";
import { walkSection } from "./report_walk.js";

const state = reportState();

/** The id of each section, its name in the navigation, and what makes it; null leaves it out. */
const SECTIONS = [
  ["first", "at a glance", firstSection],
  ["program", "the program", programSection],
  ["positions", "by position", positionsSection],
  ["training", "over training", trainingSection],
  ["head", "one head", headSection],
  ["circuit", "the circuit", circuitSection],
  ["walk", "the walk", walkSection],
  ["stream", "residual stream", streamSection],
  ["words", "in words", sentencesSection],
  ["run", "the run", runSection],
];
const page = document.getElementById("page");
const nav = element("nav", { "aria-label": "Parts of this page" });
const [first, ...others] = SECTIONS;
const made = [];
page.classList.add("report");
page.append(nav);
add(first);
// The first screen is painted before all that stands below it is made.
afterFrame(addOthers);

function add([id, name, make]) {
  const node = make(state);
  if (!node) return;
  made.push({ id, name, node });
  page.append(node);
}

function addOthers() {
  others.forEach(add);
  const links = made.map(linkTo);
  nav.append(...links);
  markRead(links);
  state.begin();
  afterFrame(() => (page.dataset.whole = ""));
}

function linkTo({ id, name }) {
  const go = (event) => {
    event.preventDefault();
    document.getElementById(id).scrollIntoView();
    state.goTo(id);
  };
  return element("a", { href: `#${id}`, onclick: go }, name);
}

/** The link of the section that is read now is marked. */
function markRead(links) {
  const read = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        const at = made.findIndex(({ node }) => node === target);
        if (isIntersecting) links.forEach((link, other) => link.toggleAttribute("aria-current", other === at));
      }
    },
    { rootMargin: "-20% 0px -75% 0px" },
  );
  for (const { node } of made) read.observe(node);
}
