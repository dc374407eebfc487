// Light or dark: as the system says, until the reader says otherwise. What the reader said holds on every page.
import { element } from "./elements.js";

const KEPT = "headlight-theme";

/** Where a browser keeps nothing for a page, asking is an error. */
function kept() {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null;
  }
}

function keep(theme) {
  try {
    localStorage.setItem(KEPT, theme);
  } catch {
    // The theme holds for this page alone.
  }
}

/** A button that changes between the two; canvases hear of it by the event `themechange`. */
export function themeButton() {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const before = kept();
  if (before === "light" || before === "dark") root.dataset.theme = before;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const button = element("button", { type: "button", class: "theme", onclick: change });
  function name() {
    button.textContent = isDark() ? "light" : "dark";
    button.setAttribute("aria-label", `Change to ${button.textContent} colours`);
  }
  function change() {
    root.dataset.theme = isDark() ? "light" : "dark";
    keep(root.dataset.theme);
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
