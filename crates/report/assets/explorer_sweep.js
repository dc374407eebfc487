// Where in the model the difference between two prompts lives: every layer at every position, patched one at a time.
import { inkOn, signedColour, signedColours } from "./colour.js";
import { choice, element, fixed, visible } from "./elements.js";
import { ask } from "./explorer_asks.js";
import { grid } from "./grid.js";

const DIRECTION = { returns: "returns", lost: "lost" };

const EXPLAINED = {
  [DIRECTION.returns]: "The model reads the other prompt, and one activation comes from your prompt: the share of your prompt's answer that returns.",
  [DIRECTION.lost]: "The model reads your prompt, and one activation comes from the other prompt: the share of your prompt's answer that is lost.",
};

/** `sweeps` are pairs of a kind and its places; `promptOf()` gives the prompt, `positionOf()` the chosen position. */
export function sweep(sweeps, promptOf, positionOf) {
  const from = element("input", { type: "text", size: 40, placeholder: "made from your prompt", "aria-label": "The other prompt of the sweep" });
  const kind = element("select", { "aria-label": "What is patched" }, sweeps.map(([name], at) => element("option", { value: at }, name)));
  let direction = DIRECTION.returns;
  const explained = element("p", { class: "hint" }, EXPLAINED[direction]);
  const directions = choice("Direction", Object.values(DIRECTION).map((value) => ({ value, text: `what ${value === DIRECTION.lost ? "is lost" : value}` })), direction, (value) => {
    direction = value;
    explained.textContent = EXPLAINED[value];
  });
  const warning = element("p", { class: "error", role: "alert" });
  const about = element("p", { "aria-live": "polite" });
  const readout = element("p", { class: "readout", "aria-live": "polite" });
  const place = element("div", {});
  const stop = element("button", { type: "button", disabled: true, onclick: () => running?.abort() }, "stop");
  let running = null;
  let rows = [];
  let places = [];
  let map = null;

  const columns = () => rows[0].tokens.map((token, at) => {
    const other = rows[0].other_tokens[at];
    return token === other ? token : `${token}/${other}`;
  });
  const value = (row, column) => rows[row].by_position[column] ?? rows[row].everywhere;

  function view() {
    const colours = signedColours();
    return {
      rows: places.length,
      columns: rows[0].tokens.length + 1,
      // The stream flows upwards: the last layer stands on top.
      colour: (row, column) => (rows[places.length - 1 - row] ? signedColour(value(places.length - 1 - row, column), 1, colours) : null),
      number: (row, column) => value(places.length - 1 - row, column),
      rowLabels: [...places].reverse().map(short),
      columnLabels: [...columns(), "all"],
      largestCell: 18,
      widestCell: 44,
      cellHeight: 20,
      label: "Share of the answer that moves, by place and position. Arrow keys move.",
    };
  }

  function tell(point) {
    const at = point?.row === null || point?.row === undefined ? null : places.length - 1 - point.row;
    if (at === null || point.column === null || !rows[at]) return;
    const where = point.column === rows[0].tokens.length ? "all positions" : `position ${point.column} ${visible(columns()[point.column])}`;
    readout.textContent = `${places[at]} at ${where}: ${fixed(value(at, point.column), 3)} of the answer ${direction === DIRECTION.lost ? "is lost" : "returns"}`;
  }

  async function begin(event) {
    event.preventDefault();
    running?.abort();
    const own = new AbortController();
    running = own;
    const question = { prompt: promptOf(), from: from.value.trim() === "" ? null : from.value, position: positionOf(), direction };
    const wanted = sweeps[Number(kind.value)][1];
    warning.textContent = "";
    const found = [];
    stop.disabled = false;
    try {
      for (const [at, next] of wanted.entries()) {
        about.textContent = `Patching ${next}, ${at + 1} of ${wanted.length} …`;
        found.push(await ask("/sweep", { ...question, place: next }, own.signal));
        if (running !== own) return;
        [rows, places] = [found, wanted];
        draw();
      }
      const [answer, other] = rows[0].answers;
      about.textContent = `After position ${question.position} the model says ${visible(answer)}, and ${visible(other)} to the other prompt, ${rows[0].other_tokens.map(visible).join(" ")}. 0: nothing moves; 1: all of the answer moves.`;
    } catch (error) {
      if (running !== own) return;
      about.textContent = "";
      if (error.name !== "AbortError") warning.textContent = error.message;
    }
    running = null;
    stop.disabled = true;
  }

  function draw() {
    if (map) map.draw();
    else {
      map = grid({ view, onPoint: tell, onPick: tell });
      place.append(map.node, legend());
    }
  }

  return element("div", {},
    element("form", { class: "controls", onsubmit: begin },
      element("label", {}, "other prompt ", from), element("label", {}, "patched ", kind), directions.node,
      element("button", { type: "submit" }, "sweep"), stop),
    explained, warning, about, place, readout);
}

/** `blocks.3.hook_resid_pre` is told by its layer. */
function short(place) {
  const layer = /^blocks\.(\d+)\./.exec(place);
  return layer ? `L${layer[1]}` : place;
}

/** Which colour is which share. */
function legend() {
  const steps = [-1, -0.5, 0, 0.5, 1];
  const node = element("div", { class: "legend" });
  const paint = () => {
    const colours = signedColours();
    const cell = (share) => {
      const colour = signedColour(share, 1, colours);
      return element("span", { class: "signed", style: `background: rgb(${colour.join(" ")}); color: ${inkOn(colour)}` }, fixed(share, 1));
    };
    node.replaceChildren(...steps.map(cell), element("span", {}, "share of the answer"));
  };
  document.addEventListener("themechange", paint);
  paint();
  return node;
}
