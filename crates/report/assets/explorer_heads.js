// The heads: a picture of each, a box that switches it off, and sets that are switched together.
import { choice, element, toggle } from "./elements.js";
import { thumbnail } from "./heatmap.js";
import { ROLE } from "./vocabulary.js";

/** With more heads, those that are shown can be chosen by their role. */
const MANY_HEADS = 32;

const layerOf = (name) => Number(/^L(\d+)/.exec(name)[1]);

/**
 * `heads` are pairs of name and role. `onChoose` hears the head that is chosen, `onSwitch` all heads that are off,
 * `onSeen(layer)` that a layer came into sight. `choose(name)` marks the chosen head, `off(names)` those that are off,
 * `draw(layer, patternOf)` draws the pictures of a layer, `fade()` marks all pictures as those of an older question.
 */
export function headSwitches(heads, { onChoose, onSwitch, onSeen }) {
  const layers = Math.max(...heads.map(([name]) => layerOf(name))) + 1;
  const rows = Array.from({ length: layers }, (_, layer) => heads.filter(([name]) => layerOf(name) === layer));
  let off = new Set();

  const cards = new Map(heads.map(([name, role]) => [name, card(name, role)]));
  const sets = roleSets(heads, (names) => switchTogether(names));
  const reset = element("button", { type: "button", onclick: () => change(new Set()) }, "all on");
  const layerSets = rows.map((row, layer) => setButton(`layer ${layer}`, row.map(([name]) => name), switchTogether));
  const drawn = rows.map((row, layer) => {
    const columns = `grid-template-columns: repeat(${row.length}, minmax(3.4rem, 9rem))`;
    const grid = element("div", { class: "head-grid", style: columns }, row.map(([name]) => cards.get(name).node));
    return element("div", { class: "layer", "data-layer": layer }, layerSets[layer].node, grid);
  });
  const filter = heads.length > MANY_HEADS ? filterOf(heads, cards, drawn) : null;
  const seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) if (isIntersecting) onSeen(Number(target.dataset.layer));
  });
  drawn.forEach((row) => seen.observe(row));

  function card(name, role) {
    const picture = element("div", { class: "picture" });
    const button = element("button", { type: "button", "aria-pressed": "false", onclick: () => onChoose(name) }, name, element("small", {}, role), picture);
    const box = toggle("off", false, () => switchTogether([name]));
    box.querySelector("input").setAttribute("aria-label", `switch ${name} off`);
    return { role, button, picture, box: box.querySelector("input"), node: element("div", { class: "switch" }, button, box) };
  }

  /** Off, or on again if all of them are off. */
  function switchTogether(names) {
    const next = new Set(off);
    const areOff = names.every((name) => next.has(name));
    for (const name of names) areOff ? next.delete(name) : next.add(name);
    change(next);
  }

  function change(next) {
    mark(next);
    onSwitch(heads.map(([name]) => name).filter((name) => next.has(name)));
  }

  function mark(next) {
    off = next;
    for (const [name, { node, box }] of cards) {
      box.checked = off.has(name);
      node.classList.toggle("is-off", off.has(name));
    }
    for (const set of [...sets, ...layerSets]) set.mark(off);
    reset.disabled = off.size === 0;
  }

  mark(off);
  return {
    node: element("div", {},
      element("div", { class: "controls" }, element("span", { class: "soft" }, "Switch off together:"), sets.map((set) => set.node), reset),
      filter,
      element("div", { class: layers > 4 ? "layers tall" : "layers", tabindex: layers > 4 ? "0" : null, role: "group", "aria-label": "Heads by layer" }, drawn)),
    choose(chosen) {
      for (const [name, { button }] of cards) button.setAttribute("aria-pressed", String(name === chosen));
    },
    off: (names) => mark(new Set(names)),
    draw(layer, patternOf) {
      for (const [name] of rows[layer]) {
        const { picture } = cards.get(name);
        picture.replaceChildren(thumbnail(patternOf(name)));
        picture.classList.remove("stale");
      }
    },
    fade() {
      for (const { picture } of cards.values()) picture.classList.add("stale");
    },
    /** The layers that are in sight now. */
    inSight() {
      const within = ({ top, bottom }) => bottom > 0 && top < innerHeight;
      return drawn.map((_, layer) => layer).filter((layer) => within(drawn[layer].getBoundingClientRect()) && inBox(drawn[layer]));
    },
  };
}

/** Whether a row is in the visible part of the box that it scrolls in. */
function inBox(row) {
  const [box, own] = [row.parentElement.getBoundingClientRect(), row.getBoundingClientRect()];
  return own.bottom > box.top && own.top < box.bottom;
}

/** A button that switches several heads; it is pressed while all of them are off. */
function setButton(text, names, onSwitch) {
  const node = element("button", { type: "button", class: "set", "aria-pressed": "false", title: `Switch ${names.join(", ")} off`, onclick: () => onSwitch(names) }, text);
  return { node, mark: (off) => node.setAttribute("aria-pressed", String(names.every((name) => off.has(name)))) };
}

/** The roles that are there, in the order in which roles are told; first those that a program has added. */
function rolesOf(heads) {
  const there = [...new Set(heads.map(([, role]) => role))];
  const told = Object.values(ROLE);
  return [...there.filter((role) => !told.includes(role)), ...told.filter((role) => there.includes(role))];
}

/** The heads of each role. */
function roleSets(heads, onSwitch) {
  const namesOf = (role) => heads.filter(([, other]) => other === role).map(([name]) => name);
  return rolesOf(heads).map((role) => setButton(`${role} (${namesOf(role).length})`, namesOf(role), onSwitch));
}

/** Which heads are shown, by role. */
function filterOf(heads, cards, rows) {
  const roles = rolesOf(heads).filter((role) => role !== ROLE.mixed);
  const options = [{ value: null, text: "all" }, ...roles.map((role) => ({ value: role, text: role }))];
  return choice("Heads that are shown", options, null, (wanted) => {
    for (const { role, node } of cards.values()) node.hidden = wanted !== null && role !== wanted;
    for (const row of rows) row.hidden = !row.querySelector(".switch:not([hidden])");
  }).node;
}
