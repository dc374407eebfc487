// What is changed while the model reads: heads switched off, activations of another prompt.
import { element, toggle, visible } from "./elements.js";
import { thumbnail } from "./heatmap.js";

/** A button for each head, with its pattern, and a box that switches it off. `onChoose` and `onSwitch` hear the head. */
export function headSwitches(heads, onChoose, onSwitch) {
  const layers = Math.max(...heads.map(([name]) => Number(/^L(\d+)/.exec(name)[1]))) + 1;
  const cards = heads.map(([name, role]) => {
    const picture = element("div", {});
    const button = element("button", { type: "button", "aria-pressed": "false", onclick: () => onChoose(name) }, name, element("small", {}, role), picture);
    const off = toggle("off", false, (isOff) => onSwitch(name, isOff));
    off.querySelector("input").setAttribute("aria-label", `switch ${name} off`);
    return { name, button, picture, node: element("div", { class: "switch" }, button, off) };
  });
  const columns = `grid-template-columns: repeat(${heads.length / layers}, minmax(4.6rem, 9rem))`;
  return {
    node: element("div", { class: "head-grid", style: columns }, cards.map(({ node }) => node)),
    /** Draws each head's pattern; `patternOf` gives it by name. */
    show(patternOf, chosen) {
      for (const { name, button, picture } of cards) {
        picture.replaceChildren(thumbnail(patternOf(name)));
        button.setAttribute("aria-pressed", String(name === chosen));
      }
    },
  };
}

/** A form that adds patches, and the list of those there are. `onChange` hears all of them. */
export function patches(sites, onChange) {
  let all = [];
  const from = element("input", { type: "text", size: 40, "aria-label": "The other prompt" });
  const site = element("select", { "aria-label": "Place" }, sites.map((name) => element("option", { value: name, selected: name === "blocks.0.hook_resid_post" }, name)));
  const positions = element("input", { type: "text", size: 10, placeholder: "all", "aria-label": "Positions, with spaces between them" });
  const list = element("ul", { class: "patches" });
  const say = element("p", { class: "readout", role: "alert" });

  function add(event) {
    event.preventDefault();
    const chosen = positions.value.split(/[\s,]+/).filter((text) => text !== "");
    const wrong = chosen.find((text) => !/^\d{1,6}$/.test(text));
    say.textContent = wrong === undefined ? "" : `${visible(wrong)} is no position; they are counted from 0`;
    if (wrong !== undefined) return;
    change([...all, { from: from.value, site: site.value, positions: chosen.length ? chosen.map(Number) : null }]);
  }

  function change(next) {
    all = next;
    const item = (patch) =>
      element("li", {}, `${patch.site} ${patch.positions ? `at ${patch.positions.join(" ")}` : "everywhere"} from “${visible(patch.from)}” `,
        element("button", { type: "button", onclick: () => change(all.filter((other) => other !== patch)) }, "remove"));
    list.replaceChildren(...all.map(item));
    onChange(all);
  }

  return element(
    "div",
    {},
    element("form", { class: "controls", onsubmit: add },
      element("label", {}, "from ", from), element("label", {}, "place ", site), element("label", {}, "positions ", positions),
      element("button", { type: "submit" }, "patch")),
    say, list,
  );
}

/** The likeliest next tokens at one position, now and untouched. `at` chooses the position. */
export function predictionTable() {
  const place = element("div", { "aria-live": "polite" });
  let answer = null;
  let at = null;
  const tokens = element("div", { class: "strip", role: "group", "aria-label": "Position" });

  function show(next, position = at) {
    const last = next.tokens.length - 1;
    answer = next;
    at = position === null || position > last ? last : position;
    paint();
  }

  function paint() {
    const button = (text, i) =>
      element("button", { type: "button", "aria-pressed": String(i === at), title: `token ${i}`, onclick: () => show(answer, i) }, visible(text));
    tokens.replaceChildren(...answer.tokens.map(button));
    const column = (name, found) =>
      element("table", { class: "bars", "data-which": name },
        element("caption", {}, name),
        element("tbody", {}, found.map(([token, probability]) =>
          element("tr", {}, element("th", { scope: "row" }, visible(token)), element("td", {}, probability.toFixed(4)),
            element("td", { class: "bar from-left" }, element("span", { class: "positive", style: `width: ${50 * probability}%`, "aria-hidden": "true" }))))));
    place.replaceChildren(column("with changes", answer.predictions[at]), column("untouched", answer.untouched[at]));
    place.className = "two";
  }

  return { node: element("div", {}, tokens, place), show };
}
