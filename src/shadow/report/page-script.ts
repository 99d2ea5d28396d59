/** Keys of the legend hide and show their series everywhere. The page is complete without it. */
export const PAGE_SCRIPT = `
for (const key of document.querySelectorAll("button.key")) {
  key.addEventListener("click", () => {
    const shown = key.getAttribute("aria-pressed") === "false";
    key.setAttribute("aria-pressed", String(shown));
    for (const one of document.querySelectorAll("[data-series]"))
      if (one.dataset.series === key.dataset.key) one.classList.toggle("off", !shown);
  });
}
`;
