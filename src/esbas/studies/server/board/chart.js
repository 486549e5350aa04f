// A chart with its legend and, behind it, the same numbers as a table.

import { number, percent } from "./format.js";
import { Table } from "./table.js";
import {
  html,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from "./vendor/htm-preact-standalone.module.js";

const { uPlot } = globalThis; // of vendor/uPlot.iife.min.js, which is not a module
const HEIGHT = 220;
const DASHES = [[], [6, 3], [2, 3]];

/**
 * The variable of board.css for a series. Series after the eighth have the same colors and other
 * dashes.
 */
export const colorOf = k => `var(--series-${(k % 8) + 1})`;

/**
 * `chart` has title, note, xLabel, x, and series: of each name, values and perhaps low and high.
 * The chart is drawn again if `theme` changes.
 */
export function Chart({ chart, theme }) {
  const element = useRef(null);
  const plot = useRef(null);
  const [width, setWidth] = useState(0);
  const [cursor, setCursor] = useState(null);
  const { title, note, xLabel, x, series, stacked } = chart;
  const show = stacked ? percent : number;
  const at = cursor ?? x.length - 1;
  const names = series.map(each => each.name);
  const shape = JSON.stringify([names, series.some(each => each.low), theme]);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      setWidth(Math.floor(entry.contentRect.width));
    });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (!width) return undefined;
    const hooks = { setCursor: [each => setCursor(each.cursor.idx ?? null)] };
    const settings = { ...options(chart, element.current), width, height: HEIGHT, hooks };
    plot.current = new uPlot(settings, data(chart), element.current);
    return () => {
      plot.current.destroy();
      plot.current = null;
    };
  }, [shape, width]);
  useLayoutEffect(() => {
    if (!plot.current) return;
    plot.current.setData(data(chart));
    const { canvas } = plot.current.ctx;
    let label = `${title}: no data yet`;
    if (x.length) {
      const last = series.map(each => `${each.name} ${show(each.values.at(-1))}`).join(", ");
      label = `${title} (${note}) up to ${xLabel} ${number(x.at(-1))}. Last: ${last}`;
    }
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", label);
  });
  let where = "no data yet";
  if (x.length) {
    where = `at ${xLabel} ${number(x[at])}`;
    if (cursor === null) where += ", the last";
  }
  return html`<figure>
    <figcaption><strong>${title}</strong> <span class="quiet">${note}</span></figcaption>
    <div class="plot" ref=${element}></div>
    <ul class="legend" aria-label=${`${title} ${where}`}>
      ${series.map((each, k) => html`<li key=${each.name}>
        <span class="swatch" style=${{ background: colorOf(k) }}></span>
        <span class="name">${each.name}</span> <span class="quiet">${show(each.values[at])}</span>
      </li>`)}
      <li class="quiet">${where}</li>
    </ul>
    <${Numbers} chart=${chart} show=${show} />
  </figure>`;
}

/** The table is made only if it is open: it can have hundreds of rows. */
function Numbers({ chart, show }) {
  const [open, setOpen] = useState(false);
  const { title, xLabel, x, series } = chart;
  const columns = [xLabel];
  for (const { name, low } of series) {
    columns.push(name);
    if (low) columns.push(`${name}, 95 % band`);
  }
  const row = (at, k) => {
    const cells = [number(at)];
    for (const { values, low, high } of series) {
      cells.push(show(values[k]));
      if (low) cells.push(band(low[k], high[k]));
    }
    return cells;
  };
  return html`<details onToggle=${event => setOpen(event.currentTarget.open)}>
    <summary>${title} as a table</summary>
    ${open && html`<${Table} table=${{ title, columns, rows: x.map(row).reverse() }} />`}
  </details>`;
}

function band(low, high) {
  return low === null || low === undefined ? "–" : `${number(low)} to ${number(high)}`;
}

/**
 * Columns for uPlot: x, then the series. Stacked ones are sums, the largest first, so that smaller
 * ones cover it.
 */
function data({ x, series, stacked }) {
  const columns = [];
  for (const { values, low, high } of series) {
    if (stacked) {
      const below = columns[0];
      const sum = (value, k) => (value === null ? null : 100 * value + (below?.[k] ?? 0));
      columns.unshift(values.map(sum));
    } else {
      if (low) columns.push(high, low);
      columns.push(values);
    }
  }
  return [x, ...columns];
}

function options({ series, stacked }, element) {
  const paint = painter(element);
  const axis = {
    stroke: paint("--quiet"),
    grid: { stroke: paint("--grid"), width: 1 },
    ticks: { stroke: paint("--grid"), width: 1 },
  };
  const points = { show: false };
  const lines = [];
  const bands = [];
  series.forEach((each, k) => {
    const color = paint(`--series-${(k % 8) + 1}`);
    const dash = DASHES[Math.floor(k / 8) % DASHES.length];
    if (stacked) {
      lines.unshift({ stroke: color, fill: color, width: 0, points: { ...points } });
    } else if (each.low) {
      const fill = color.replace("rgb(", "rgba(").replace(")", ", 0.15)");
      bands.push({ series: [lines.length + 1, lines.length + 2], fill });
      lines.push({ width: 0, points: { ...points } }, { width: 0, points: { ...points } });
      lines.push({ stroke: color, width: 2, dash, points: { ...points } });
    } else {
      lines.push({ stroke: color, width: 2, dash });
    }
  });
  const showMark = mark => (stacked ? `${mark} %` : number(mark));
  return {
    series: [{}, ...lines],
    bands,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false, points: { show: !stacked } },
    scales: { x: { time: false }, y: stacked ? { range: [0, 100] } : {} },
    axes: [
      { ...axis, values: (_, marks) => marks.map(number), space: 60, size: 32 },
      { ...axis, values: (_, marks) => marks.map(showMark), size: 58 },
    ],
  };
}

/** Computes variables of board.css: a canvas cannot use them. */
function painter(element) {
  return name => {
    element.style.color = `var(${name})`;
    const color = getComputedStyle(element).color;
    element.style.color = "";
    return color;
  };
}
