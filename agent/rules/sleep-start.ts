/** How the agent learns that the machine suspends, and delays it: https://systemd.io/INHIBITOR_LOCKS */
import type { Inhibitor } from './shutdown-start.ts';

/** The inhibitor lock, as `systemd-inhibit --list` shows it. */
export const SLEEP_INHIBITOR: Inhibitor = Object.freeze({
  what: 'sleep',
  who: 'nodekeeper-agent',
  why: 'The cluster must know that this machine sleeps',
  mode: 'delay',
});

/** The reason in the promise, for people. */
export const SLEEP_REASON = 'The machine suspends';

/** Two attempts end within the 5 s that logind waits for a lock by default. */
export const SLEEP_PROMISE_ATTEMPTS = 2;
export const SLEEP_PROMISE_TIMEOUT_MS = 2_000;
