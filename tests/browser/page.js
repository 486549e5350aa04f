// What is wrong with the page, as sentences. Everything is measured as the browser shows it.
() => {
  const wrong = [], visible = 10; // pixels from which on a hint can be read
  document.querySelectorAll("details").forEach(each => { each.open = true; });
  const name = element => element.textContent.trim().slice(0, 40) || element.tagName;
  const edges = element => element.getBoundingClientRect();
  const within = (inner, outer) => inner.left >= outer.left - 1 && inner.right <= outer.right + 1
    && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
  if (document.documentElement.scrollWidth > innerWidth) wrong.push("the page scrolls sideways");

  const boxes = [...document.querySelectorAll(".scroll")];
  const hinted = new Set(boxes.filter(box => edges(box.querySelector(".hint")).height >= visible));
  for (const box of boxes) {
    const scrolls = box.scrollWidth > box.clientWidth;
    if (scrolls !== hinted.has(box)) wrong.push(`${scrolls ? "no hint at" : "a needless hint at"} ${name(box)}`);
    if (!within(edges(box), { left: 0, right: innerWidth, top: -Infinity, bottom: Infinity })) wrong.push("a box is cut off");
  }
  for (const cell of document.querySelectorAll("th, td")) {
    const box = cell.closest(".scroll");
    if (cell.scrollWidth > cell.clientWidth + 1) wrong.push(`the text of a cell is cut off: ${name(cell)}`);
    if (!hinted.has(box) && !within(edges(cell), edges(box))) wrong.push(`a cell is cut off: ${name(cell)}`);
    const verdict = cell.tagName === "TH" && ["verdict", "agrees?", "ESBAS is", "state"].includes(cell.textContent);
    if (verdict && innerWidth >= 1280 && !within(edges(cell), edges(box))) wrong.push(`hidden: ${name(cell)}`);
  }
  for (const figure of document.querySelectorAll("figure svg")) {
    const label = figure.getAttribute("aria-label");
    if (!within(edges(figure), edges(figure.closest(".wide")))) wrong.push(`outside its box: ${label}`);
    const texts = [...figure.querySelectorAll("g[id*='-text_']")];
    if (texts.length < 5) wrong.push(`few texts in: ${label}`);
    for (const text of texts) {
      if (text.querySelector("use") && !within(edges(text), edges(figure))) wrong.push(`a text is cut off in: ${label}`);
      const scaled = text.querySelector("g[transform*='scale']");
      const matrix = scaled && scaled.getScreenCTM();
      const size = matrix ? 100 * Math.hypot(matrix.a, matrix.b) : 99; // glyphs are 100 units large
      if (size < 9) wrong.push(`texts of ${size.toFixed(1)} pixels in: ${label}`);
    }
  }
  const ids = [...document.querySelectorAll("[id]")].map(each => each.id);
  if (new Set(ids).size < ids.length) wrong.push("ids are not unique");
  return [...new Set(wrong)];
}
