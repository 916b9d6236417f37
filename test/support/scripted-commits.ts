/** An object store with scripted outcomes of its commits: conflicts and refusals that are rare in races. */
import type { KubeObject, ObjectRef } from '../../shared/kinds/types.ts';
import type { Commit, CommitOutcome, ObjectStore } from '../../shared/store/object-store.ts';

/** `committed`: with the objects of its own writes. */
export type ScriptedOutcome = CommitOutcome | 'committed';

export function scriptedCommits(
  outcomes: readonly ScriptedOutcome[],
  stored: (ref: ObjectRef) => KubeObject | undefined = () => undefined,
) {
  const left = [...outcomes];
  const commits: Commit[] = [];
  const reads: string[] = [];
  const read = (ref: ObjectRef): KubeObject | undefined => {
    reads.push(ref.name);
    return stored(ref);
  };
  const objects = {
    get: async (ref: ObjectRef) => read(ref),
    getMany: async (refs: readonly ObjectRef[]) => refs.map(read),
    list: async () => ({ objects: [] }),
    async commit(commit: Commit): Promise<CommitOutcome> {
      commits.push(commit);
      const outcome = left.shift() ?? { kind: 'contended' };
      if (outcome !== 'committed') return outcome;
      return {
        kind: 'committed',
        objects: commit.writes.map((write) => (write.kind === 'delete' ? write.previous : write.object)),
      };
    },
  } as unknown as ObjectStore;
  return {
    objects,
    commits,
    reads,
    /** `kind name` of each write, by commit. */
    written: () => commits.map(({ writes }) => writes.map(({ kind, ref }) => `${kind} ${ref.name}`)),
  };
}
