// Light or dark: as the system says, until the reader says otherwise.
import { element } from "./elements.js";

/** A button that changes between the two; canvases hear of it by the event `themechange`. */
export function themeButton() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const button = element("button", { type: "button", class: "theme", onclick: change });
  function name() {
    button.textContent = isDark() ? "light" : "dark";
    button.setAttribute("aria-label", `Change to ${button.textContent} colours`);
  }
  function change() {
    root.dataset.theme = isDark() ? "light" : "dark";
    changed();
  }
  function changed() {
    name();
    document.dispatchEvent(new Event("themechange"));
  }
  system.addEventListener("change", changed);
  name();
  return button;
}
