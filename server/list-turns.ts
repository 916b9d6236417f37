/**
 * Lists at once. One of 24 MB needs some 80 MB while it is read, written and compressed, and one client may ask for
 * hundreds of them. Those that wait need nothing but their request.
 */
import type { InTurn } from '../shared/api/call.ts';

const ALL_MAX = 8;
/** Of one user. A process computes one list at a time anyway: more of them wait for the disk only. */
const OWN_MAX = 2;

interface User {
  running: number;
  readonly waiting: (() => void)[];
}

/** The user without a turn for the longest time is next. One that waits for its own lists delays no other. */
export function listTurns(): InTurn {
  /** In the order in which they had their last turn. */
  const users = new Map<string, User>();
  let running = 0;

  function startNext(): void {
    for (const [name, user] of users) {
      if (running >= ALL_MAX) return;
      if (user.running >= OWN_MAX) continue;
      const start = user.waiting.shift();
      if (start === undefined) continue;
      users.delete(name);
      users.set(name, user);
      user.running += 1;
      running += 1;
      start();
    }
  }

  return async (name, work) => {
    const user = users.get(name) ?? { running: 0, waiting: [] };
    users.set(name, user);
    await new Promise<void>((resolve) => {
      user.waiting.push(resolve);
      startNext();
    });
    try {
      return await work();
    } finally {
      running -= 1;
      user.running -= 1;
      if (user.running === 0 && user.waiting.length === 0) users.delete(name);
      startNext();
    }
  };
}
