// The colors of the page and of its figures as the browser computes them: background, text, figures' backgrounds and texts.
() => {
  const colors = (selector, property) => [...new Set([...document.querySelectorAll(selector)].map(each => getComputedStyle(each)[property]))];
  return {
    page: colors("body", "backgroundColor"),
    text: colors("body, th, td, figcaption", "color"),
    figures: colors("figure g[id$='-patch_1'] path", "fill"),
    labels: colors("figure g[id*='-text_'] use", "fill"),
    lines: colors("figure g[id*='-line2d_'] :is(path, use), figure g[id*='-LineCollection_'] path", "stroke"),
  };
}
