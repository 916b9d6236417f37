/** The events of log groups in memory. Of a group that has too many, the oldest are dropped. */

export interface LogEvent {
  readonly timestamp: number;
  readonly message: string;
}

const EVENTS_MAX = 1_000;

export class LogGroups {
  readonly #groups = new Map<string, LogEvent[]>();

  /** Before its first event a group would be unknown. */
  create(name: string): void {
    if (!this.#groups.has(name)) this.#groups.set(name, []);
  }

  add(name: string, event: LogEvent): void {
    this.create(name);
    const events = this.#groups.get(name)!;
    events.push(event);
    // Half at once: a line costs no move of all others.
    if (events.length > 2 * EVENTS_MAX) events.splice(0, EVENTS_MAX);
  }

  /** In the order of their times. Undefined: there is no such group. */
  events(name: string): readonly LogEvent[] | undefined {
    return this.#groups.get(name)?.toSorted((a, b) => a.timestamp - b.timestamp);
  }
}
