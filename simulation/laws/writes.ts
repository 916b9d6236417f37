/** L8: of concurrent writes on one resourceVersion exactly one wins; an acknowledged write is never lost. */
import type { Law, LawContext } from './law.ts';

/** An acknowledged increment of the counter of a Node. */
export interface CountedWrite {
  readonly nodeName: string;
  readonly uid: string;
  /** The version it was based on. */
  readonly resourceVersion: string;
  readonly token: string;
}

export interface WriteLaw extends Law {
  /** The write was acknowledged. */
  onAcknowledged(write: CountedWrite): void;
}

export function writesAreKept(context: LawContext): WriteLaw {
  const written = new Set<string>();
  const winners = new Map<string, string>();
  return {
    name: 'L8',
    onHappened(happened) {
      if (happened.kind !== 'counted') return;
      const { node, from, to, token } = happened;
      written.add(`${node.uid} ${token}`);
      if (to === from + 1) return;
      const message = `the counter on ${node.name} went from ${from} to ${to}: a write was lost`;
      context.fail({ law: 'L8', subjects: [node.name], message });
    },
    onAcknowledged({ nodeName, uid, resourceVersion, token }) {
      if (!written.has(`${uid} ${token}`)) {
        context.fail({ law: 'L8', subjects: [nodeName], message: `write ${token} was acknowledged and is not there` });
      }
      const version = `${uid} ${resourceVersion}`;
      const winner = winners.get(version);
      if (winner !== undefined && winner !== token) {
        const message = `writes ${winner} and ${token} on version ${resourceVersion} of ${nodeName} were both acknowledged`;
        context.fail({ law: 'L8', subjects: [nodeName], message });
      }
      winners.set(version, token);
    },
  };
}
