// One study or training: who is in control, charts, tables.

import { Chart } from "./chart.js";
import { Choices } from "./choices.js";
import { Table } from "./table.js";
import { html } from "./vendor/htm-preact-standalone.module.js";

const STATES = { connecting: "connecting …", live: "live", lost: "connection lost, trying again …", finished: "finished" };

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
  return html`
    ${view.now && html`<p class="now"><strong>${view.now.arm}</strong>${view.now.text}<strong>${view.now.last}</strong>.</p>`}
    <dl class="facts">${view.facts.map(([term, text]) => html`<div key=${term}><dt>${term}</dt><dd>${text}</dd></div>`)}</dl>
    <div class="columns">
      ${view.charts.map(chart => html`<${Chart} key=${chart.title} chart=${chart} theme=${theme} />`)}
    </div>
    <div class="columns">
      <section><h3>${view.arms.title}</h3>${view.arms.note && html`<p class="quiet">${view.arms.note}</p>`}<${Table} table=${view.arms} /></section>
      ${view.choices && html`<${Choices} feed=${feed} choices=${view.choices} />`}
    </div>
    <div class="columns">
      ${view.tables.map(table => html`<section key=${table.key ?? table.title.split(":")[0]}>
        <h3>${table.title}</h3>
        ${table.note && html`<p class="quiet">${table.note}</p>`}
        <${Table} table=${table} />
      </section>`)}
    </div>`;
}
