/** Sessions at once in this process. Each is two connections and at most half a megabyte that one side has not read. */
import * as status from '../../shared/kubernetes/status.ts';

export interface SessionLimits {
  readonly all: number;
  readonly ofUser: number;
  readonly ofNode: number;
}

export const SESSIONS_MAX: SessionLimits = { all: 500, ofUser: 100, ofNode: 100 };

/** Between two attempts of a client at a limit. Seconds. */
const RETRY_AFTER_SECONDS = 5;

export interface SessionSlot {
  release(): void;
}

export interface SessionSlots {
  held(): number;
  /** @throws StatusError 429 */
  acquire(of: { readonly user: string; readonly nodeName: string }): SessionSlot;
}

export function sessionSlots({ all, ofUser, ofNode }: SessionLimits = SESSIONS_MAX): SessionSlots {
  const users = new Map<string, number>();
  const nodes = new Map<string, number>();
  let held = 0;
  return {
    held: () => held,
    acquire({ user, nodeName }) {
      if ((users.get(user) ?? 0) >= ofUser) throw refused(`${status.quote(user)} has ${ofUser} sessions`);
      if ((nodes.get(nodeName) ?? 0) >= ofNode) throw refused(`node ${status.quote(nodeName)} has ${ofNode} sessions`);
      if (held >= all) throw refused(`this cluster has ${all} sessions`);
      held += 1;
      add(users, user, 1);
      add(nodes, nodeName, 1);
      let isHeld = true;
      return {
        release() {
          if (!isHeld) return;
          isHeld = false;
          held -= 1;
          add(users, user, -1);
          add(nodes, nodeName, -1);
        },
      };
    },
  };
}

const refused = (why: string): status.StatusError =>
  status.tooManyRequests(`${why}, the most at once; try again later`, { retryAfterSeconds: RETRY_AFTER_SECONDS });

function add(counts: Map<string, number>, key: string, more: number): void {
  const count = (counts.get(key) ?? 0) + more;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}
