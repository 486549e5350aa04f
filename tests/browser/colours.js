// The colours of the page and of its figures as the browser computes them: background, text, figures' backgrounds and texts.
() => {
  const colours = (selector, property) => [...new Set([...document.querySelectorAll(selector)].map(each => getComputedStyle(each)[property]))];
  return {
    page: colours("body", "backgroundColor"),
    text: colours("body, th, td, figcaption", "color"),
    figures: colours("figure g[id$='-patch_1'] path", "fill"),
    labels: colours("figure g[id*='-text_'] use", "fill"),
    lines: colours("figure g[id*='-line2d_'] :is(path, use), figure g[id*='-LineCollection_'] path", "stroke"),
  };
}
