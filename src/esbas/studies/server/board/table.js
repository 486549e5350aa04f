// A table in a box that scrolls sideways if it must, also by keyboard.

import { html } from "./vendor/htm-preact-standalone.module.js";

const LONG = 24; // characters from which on a text is broken into lines
const NUMBER = /^[-–+.,\d\s%e]*$/;

/**
 * `table` has title, columns and rows of texts; `marked` is the number of a row that is emphasized,
 * with the text `mark`; `empty` is shown if there are no rows.
 */
export function Table({ table }) {
  const { title, columns, rows, marked, mark, empty } = table;
  if (rows.length === 0) return html`<p class="quiet">${empty ?? "None."}</p>`;
  const numeric = columns.map((_, k) => k > 0 && rows.every(row => NUMBER.test(row[k])));
  const kind = (k, text = "") => {
    if (numeric[k]) return "number";
    return text.length > LONG ? "long" : "";
  };
  const header = (name, k) => {
    const long = name.length > LONG / 2 ? "long" : "";
    return html`<th key=${k} scope="col" class=${`${kind(k)} ${long}`}>${name}</th>`;
  };
  const cell = (text, k, r) => {
    if (k > 0) return html`<td class=${kind(k, text)}>${text}</td>`;
    const note = r === marked ? html` <span class="mark">${mark}</span>` : null;
    return html`<th scope="row" class=${kind(k, text)}>${text}${note}</th>`;
  };
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${title}>
    <table>
      <caption class="unseen">${title}</caption>
      <thead><tr>${columns.map(header)}</tr></thead>
      <tbody>
        ${rows.map((row, r) => html`<tr key=${r} class=${r === marked ? "marked" : ""}>
          ${row.map((text, k) => cell(text, k, r))}
        </tr>`)}
      </tbody>
    </table>
  </div>`;
}
