// Activations of another prompt, put in while the model reads.
import { element, visible } from "./elements.js";

/**
 * A form that adds patches, and the list of those that are in force. `check(patches)` asks whether the model can be read
 * with them and gives an error's message or null: a patch that cannot be is not listed. `onChange` hears all patches.
 */
export function patches(sites, check, onChange) {
  let all = [];
  const from = element("input", { type: "text", size: 40, "aria-label": "The other prompt" });
  const site = element("select", { "aria-label": "Place" }, sites.map((name) => element("option", { value: name, selected: name === "blocks.0.hook_resid_post" }, name)));
  const positions = element("input", { type: "text", size: 10, placeholder: "all", "aria-label": "Positions, with spaces between them" });
  const list = element("ul", { class: "patches" });
  const warning = element("p", { class: "error", role: "alert" });

  async function add(event) {
    event.preventDefault();
    const chosen = positions.value.split(/[\s,]+/).filter((text) => text !== "");
    const wrong = chosen.find((text) => !/^\d{1,6}$/.test(text));
    if (wrong !== undefined) {
      warning.textContent = `${visible(wrong)} is no position; positions are counted from 0`;
      return;
    }
    const patch = { from: from.value, site: site.value, positions: chosen.length ? chosen.map(Number) : null };
    const message = await check([...all, patch]);
    warning.textContent = message ?? "";
    if (message === null) change([...all, patch]);
  }

  function change(next) {
    all = next;
    warning.textContent = "";
    const item = (patch) =>
      element("li", {}, `${patch.site} ${patch.positions ? `at ${patch.positions.join(" ")}` : "everywhere"} from “${visible(patch.from)}” `,
        element("button", { type: "button", onclick: () => change(all.filter((other) => other !== patch)) }, "remove"));
    list.replaceChildren(...all.map(item));
    onChange(all);
  }

  const form = element("form", { class: "controls", onsubmit: add },
    element("label", {}, "from ", from), element("label", {}, "place ", site), element("label", {}, "positions ", positions),
    element("button", { type: "submit" }, "patch"));
  return {
    node: element("div", {}, form, warning, list),
    say: (message) => (warning.textContent = message),
    clear: () => all.length && change([]),
  };
}
