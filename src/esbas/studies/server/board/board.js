// The board: a list of studies or trainings, and a panel for each that is selected.

import { number } from "./format.js";
import { Panel } from "./panel.js";
import { get, token } from "./source.js";
import { StudyFeed } from "./study.js";
import { TrainingFeed } from "./training.js";
import {
  html,
  render,
  useCallback,
  useEffect,
  useReducer,
  useRef,
  useState,
} from "./vendor/htm-preact-standalone.module.js";

const SOURCE = document.querySelector("meta[name=esbas-source]").content;
// Panels: browsers have six connections to a service, and each panel of a study keeps one.
const MOST = 4;
const DRAWN = 250; // milliseconds between two drawings
const LISTED = 10_000; // milliseconds between two requests for the list

async function list() {
  const found = await get(`/v1/${SOURCE}`);
  if (SOURCE === "studies") {
    return found.studies.map(({ name, selector, last }) => ({
      id: name,
      name,
      about: `${selector.name}, ${number(last)} events`,
    }));
  }
  return found.trainings.map(({ number: id, name, folder }) => ({
    id: String(id),
    name,
    about: folder,
  }));
}

/** The selection is in the address, so that it can be kept as a bookmark. */
const selection = {
  get: () => new URLSearchParams(location.hash.slice(1)).getAll("show").slice(0, MOST),
  set: ids => {
    const shown = new URLSearchParams(ids.map(id => ["show", id]));
    history.replaceState(null, "", `#${shown}`);
  },
};

function Board() {
  const [items, setItems] = useState(null);
  const [shown, setShown] = useState(selection.get);
  const [locked, setLocked] = useState(null); // why a token is needed, or null
  const [lost, setLost] = useState("");
  const [theme, toggle] = useTheme();
  const visible = useVisible();
  const failed = useCallback(error => {
    if (error.status === 401) setLocked(error.message);
  }, []);
  const loaded = found => {
    setItems(found);
    setLocked(null);
    setLost("");
    setShown(before => (before.length || !found.length ? before : [found[0].id]));
  };
  const notLoaded = error => {
    failed(error);
    if (error.status === 401) return;
    const unreachable = "The connection to the service is lost. Trying again …";
    setLost(error.status ? error.message : unreachable);
  };
  const load = useCallback(() => list().then(loaded, notLoaded), []);
  useEffect(() => {
    if (locked !== null || !visible) return undefined;
    load();
    const timer = setInterval(load, LISTED);
    return () => clearInterval(timer);
  }, [locked, visible]);
  useEffect(() => {
    const changed = () => setShown(selection.get());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  const select = (id, on) => setShown(before => {
    const others = before.filter(each => each !== id);
    const next = on ? [...others, id].slice(0, MOST) : others;
    selection.set(next);
    return next;
  });
  const known = (items ?? []).filter(each => shown.includes(each.id));
  const forget = () => {
    token.set("");
    setItems(null);
    setLocked("");
  };
  const unlock = () => {
    setLocked(null);
    load();
  };
  const skip = event => {
    event.preventDefault();
    document.getElementById("main").focus();
  };
  const needsToken = () => html`<main id="main" tabindex="-1">
    <${TokenForm} refused=${token.get() !== ""} message=${locked} done=${unlock} />
  </main>`;
  const panels = () => html`<div class="layout">
    <nav aria-label=${SOURCE}><${List} items=${items} shown=${shown} select=${select} /></nav>
    <main id="main" tabindex="-1">
      ${known.map((each, k) => html`<${Follow}
        key=${each.id}
        item=${each}
        theme=${theme}
        visible=${visible}
        failed=${failed}
        id=${`panel-${k}`}
      />`)}
      ${items && known.length === 0 && html`<p class="quiet">
        ${items.length ? `Select one of the ${SOURCE}.` : `There are no ${SOURCE} yet.`}
      </p>`}
    </main>
  </div>`;
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the ${SOURCE}</a>
    <header class="top row">
      <h1>esbas <span class="quiet">${SOURCE}</span></h1>
      <span class="row">
        ${SOURCE === "studies" && html`<a href="/docs">Requests</a>`}
        ${token.get() && locked === null && html`
          <button type="button" onClick=${forget}>Forget the token</button>`}
        <button type="button" aria-pressed=${theme === "dark"} onClick=${toggle}>Dark</button>
      </span>
    </header>
    <div role="status">${lost && html`<p class="problem">${lost}</p>`}</div>
    ${locked === null ? panels() : needsToken()}`;
}

function List({ items, shown, select }) {
  const [filter, setFilter] = useState("");
  if (items === null) return html`<p class="quiet">Loading …</p>`;
  const found = items.filter(each => each.name.toLowerCase().includes(filter.toLowerCase()));
  const full = items.filter(each => shown.includes(each.id)).length >= MOST;
  const title = SOURCE === "studies" ? "Studies" : "Trainings";
  return html`
    ${items.length > 8 && html`<label class="filter">Filter <input
      type="search"
      value=${filter}
      onInput=${event => setFilter(event.target.value)}
    /></label>`}
    <fieldset><legend>${title}, up to ${MOST} side by side</legend>
      <ul class="items">${found.map(each => html`<li key=${each.id}><label>
        <input
          type="checkbox"
          checked=${shown.includes(each.id)}
          disabled=${full && !shown.includes(each.id)}
          onChange=${event => select(each.id, event.target.checked)}
        />
        <span>
          <span class="name">${each.name}</span><br /><span class="quiet">${each.about}</span>
        </span>
      </label></li>`)}</ul>
    </fieldset>`;
}

/** Follows a study or a training while it is selected and the page is visible. */
function Follow({ item, theme, visible, failed, id }) {
  const [, draw] = useReducer(count => count + 1, 0);
  const timer = useRef(null);
  const feed = useRef(null);
  const changed = () => {
    timer.current ??= setTimeout(() => {
      timer.current = null;
      draw();
    }, DRAWN);
  };
  feed.current ??= SOURCE === "studies"
    ? new StudyFeed(item.id, changed, failed)
    : new TrainingFeed(item, changed, failed);
  useEffect(() => {
    if (!visible) return undefined;
    feed.current.start();
    return () => feed.current.stop();
  }, [visible]);
  useEffect(() => {
    const ages = setInterval(draw, 5000); // ages of open choices
    return () => {
      clearInterval(ages);
      clearTimeout(timer.current);
    };
  }, []);
  return html`<${Panel} feed=${feed.current} theme=${theme} id=${id} />`;
}

function TokenForm({ refused, message, done }) {
  const field = useRef(null);
  useEffect(() => field.current.focus(), []);
  const submit = event => {
    event.preventDefault();
    token.set(field.current.value.trim());
    done();
  };
  const text = refused
    ? `The token was not accepted. ${message}`
    : "Enter one with the scope read, or write. It is kept until this tab is closed.";
  return html`<form class="token" onSubmit=${submit}>
    <h2>This service needs a token</h2>
    <p role="alert">${text}</p>
    <p class="row">
      <label>Token <input ref=${field} type="password" autocomplete="off" required /></label>
      <button>Continue</button>
    </p>
  </form>`;
}

function useTheme() {
  const media = matchMedia("(prefers-color-scheme: dark)");
  const preferred = () => (media.matches ? "dark" : "light");
  const chosen = () => localStorage.getItem("esbas-theme");
  const [theme, setTheme] = useState(chosen() ?? preferred());
  document.documentElement.dataset.theme = theme;
  useEffect(() => {
    const follow = () => {
      if (!chosen()) setTheme(preferred());
    };
    media.addEventListener("change", follow);
    return () => media.removeEventListener("change", follow);
  }, []);
  const toggle = () => {
    const next = theme === "dark" ? "light" : "dark";
    localStorage.setItem("esbas-theme", next);
    setTheme(next);
  };
  return [theme, toggle];
}

function useVisible() {
  const [visible, setVisible] = useState(!document.hidden);
  useEffect(() => {
    const changed = () => setVisible(!document.hidden);
    document.addEventListener("visibilitychange", changed);
    return () => document.removeEventListener("visibilitychange", changed);
  }, []);
  return visible;
}

render(html`<${Board} />`, document.body);
