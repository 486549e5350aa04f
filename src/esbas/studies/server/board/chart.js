// A chart with its legend and, behind it, the same numbers as a table.

import { number, percent } from "./format.js";
import { Table } from "./table.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/htm-preact-standalone.module.js";

const { uPlot } = globalThis; // of vendor/uPlot.iife.min.js, which is not a module
const HEIGHT = 220;
const DASHES = [[], [6, 3], [2, 3]];

/** The variable of board.css for a series. Series after the eighth have the same colours and other dashes. */
export const colourOf = k => `var(--series-${(k % 8) + 1})`;

/** `chart` has title, note, xLabel, x, and series: of each name, values and perhaps low and high. `theme`: redraw if it changes. */
export function Chart({ chart, theme }) {
  const place = useRef(null), plot = useRef(null), [width, setWidth] = useState(0), [cursor, setCursor] = useState(null);
  const { title, note, xLabel, x, series, stacked } = chart;
  const show = stacked ? percent : number, at = cursor ?? x.length - 1;
  const shape = JSON.stringify([series.map(each => each.name), series.some(each => each.low), theme]);
  useEffect(() => {
    const observer = new ResizeObserver(([{ contentRect }]) => setWidth(Math.floor(contentRect.width)));
    observer.observe(place.current);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (!width) return undefined;
    const hooks = { setCursor: [each => setCursor(each.cursor.idx ?? null)] };
    plot.current = new uPlot({ ...options(chart, place.current), width, height: HEIGHT, hooks }, data(chart), place.current);
    return () => { plot.current.destroy(); plot.current = null; };
  }, [shape, width]);
  useLayoutEffect(() => {
    if (!plot.current) return;
    plot.current.setData(data(chart));
    const canvas = plot.current.ctx.canvas, last = series.map(each => `${each.name} ${show(each.values.at(-1))}`).join(", ");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", x.length ? `${title} (${note}) up to ${xLabel} ${number(x.at(-1))}. Last: ${last}` : `${title}: no data yet`);
  });
  const where = x.length === 0 ? "no data yet" : cursor === null ? `at ${xLabel} ${number(x.at(-1))}, the last` : `at ${xLabel} ${number(x[at])}`;
  return html`<figure>
    <figcaption><strong>${title}</strong> <span class="quiet">${note}</span></figcaption>
    <div class="plot" ref=${place}></div>
    <ul class="legend" aria-label=${`${title} ${where}`}>
      ${series.map((each, k) => html`<li key=${each.name}><span class="swatch" style=${{ background: colourOf(k) }}></span>
        <span class="name">${each.name}</span> <span class="quiet">${show(each.values[at])}</span></li>`)}
      <li class="quiet">${where}</li>
    </ul>
    <${Numbers} chart=${chart} show=${show} />
  </figure>`;
}

/** The table is made only if it is open: it can have hundreds of rows. */
function Numbers({ chart, show }) {
  const [open, setOpen] = useState(false), { title, xLabel, x, series } = chart;
  const columns = [xLabel, ...series.flatMap(({ name, low }) => (low ? [name, `${name}, 95 % band`] : [name]))];
  const row = (at, k) => [number(at), ...series.flatMap(({ values, low, high }) => (low ? [show(values[k]), band(low[k], high[k])] : [show(values[k])]))];
  return html`<details onToggle=${event => setOpen(event.currentTarget.open)}>
    <summary>${title} as a table</summary>
    ${open && html`<${Table} table=${{ title, columns, rows: x.map(row).reverse() }} />`}
  </details>`;
}

function band(low, high) {
  return low === null || low === undefined ? "–" : `${number(low)} to ${number(high)}`;
}

/** Columns for uPlot: x, then the series. Stacked ones are sums, the largest first, so that smaller ones cover it. */
function data({ x, series, stacked }) {
  if (!stacked) return [x, ...series.flatMap(({ values, low, high }) => (low ? [high, low, values] : [values]))];
  const sums = [];
  for (const { values } of series) {
    const below = sums.at(-1);
    sums.push(values.map((value, k) => (value === null ? null : 100 * value + (below ? below[k] ?? 0 : 0))));
  }
  return [x, ...sums.reverse()];
}

function options({ series, stacked }, element) {
  const paint = painter(element), dash = k => DASHES[Math.floor(k / 8) % DASHES.length];
  const axis = { stroke: paint("--quiet"), grid: { stroke: paint("--grid"), width: 1 }, ticks: { stroke: paint("--grid"), width: 1 } };
  const lines = [], bands = [];
  series.forEach((each, k) => {
    const colour = paint(`--series-${(k % 8) + 1}`), edge = { width: 0, points: { show: false } };
    if (stacked) lines.unshift({ stroke: colour, fill: colour, width: 0, points: { show: false } });
    else if (!each.low) lines.push({ stroke: colour, width: 2, dash: dash(k) });
    else {
      bands.push({ series: [lines.length + 1, lines.length + 2], fill: colour.replace("rgb(", "rgba(").replace(")", ", 0.15)") });
      lines.push(edge, { ...edge }, { stroke: colour, width: 2, dash: dash(k), points: { show: false } });
    }
  });
  return {
    series: [{}, ...lines],
    bands,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false, points: { show: !stacked } },
    scales: { x: { time: false }, y: stacked ? { range: [0, 100] } : {} },
    axes: [
      { ...axis, values: (_, marks) => marks.map(number), space: 60, size: 32 },
      { ...axis, values: (_, marks) => marks.map(mark => (stacked ? `${mark} %` : number(mark))), size: 58 },
    ],
  };
}

/** Computes variables of board.css: a canvas cannot use them. */
function painter(element) {
  return name => {
    element.style.color = `var(${name})`;
    const colour = getComputedStyle(element).color;
    element.style.color = "";
    return colour;
  };
}
