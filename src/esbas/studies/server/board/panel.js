// One study or training: the arm in control, charts, tables.

import { Chart } from "./chart.js";
import { Choices } from "./choices.js";
import { Table } from "./table.js";
import { html } from "./vendor/htm-preact-standalone.module.js";

const STATES = {
  connecting: "connecting …",
  live: "live",
  lost: "connection lost, trying again …",
  finished: "finished",
};

export function Panel({ feed, theme, id }) {
  const view = feed.view();
  return html`<section class="panel" aria-labelledby=${id}>
    <header class="row">
      <h2 id=${id}>${feed.title}</h2>
      <span class=${`state ${feed.state}`} role="status">${STATES[feed.state]}</span>
    </header>
    ${feed.problem && html`<p class="problem" role="alert">${feed.problem}</p>`}
    ${view && html`<${Content} view=${view} feed=${feed} theme=${theme} />`}
  </section>`;
}

function Content({ view, feed, theme }) {
  const [first, ...others] = view.tables;
  return html`
    ${view.now && html`<${Now} now=${view.now} />`}
    <dl class="facts">
      ${view.facts.map(([term, text]) => html`<div key=${term}>
        <dt>${term}</dt><dd>${text}</dd>
      </div>`)}
    </dl>
    <div class="columns">
      ${view.charts.map(chart => html`
        <${Chart} key=${chart.title} chart=${chart} theme=${theme} />`)}
    </div>
    <div class="columns"><${Titled} table=${view.arms} /><${Titled} table=${first} /></div>
    ${view.choices && html`<${Choices} feed=${feed} choices=${view.choices} />`}
    <div class="columns">
      ${others.map((table, k) => html`<${Titled} key=${k} table=${table} />`)}
    </div>`;
}

function Now({ now }) {
  return html`<p class="now">
    <strong>${now.arm}</strong>${now.text}<strong>${now.last}</strong>.
  </p>`;
}

function Titled({ table }) {
  return html`<section>
    <h3>${table.title}</h3>
    ${table.note && html`<p class="quiet">${table.note}</p>`}
    <${Table} table=${table} />
  </section>`;
}
