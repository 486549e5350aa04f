// What studies and trainings have in common: a source that is followed until it is stopped, and
// again after it was lost.

import { persist } from "./source.js";

export class Feed {
  constructor(title, path, changed, failed) {
    this.title = title;
    this.path = path;
    this.state = "connecting";
    this.problem = "";
    this.changed = changed;
    this.failed = failed;
  }

  start() {
    this.stopping = new AbortController();
    const { signal } = this.stopping;
    const failed = error => {
      this.state = "lost";
      this.problem = error.status ? error.message : "";
      this.failed(error);
      this.changed();
    };
    persist(working => this.follow(working, signal), { failed, signal });
  }

  stop() {
    this.stopping.abort();
  }
}
