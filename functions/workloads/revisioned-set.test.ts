import { describe, expect, it } from 'vitest';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { KubeObject, KubeStatefulSet } from '../../shared/kinds/types.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { workDependencies } from '../../shared/ticks/dependencies.ts';
import { type ScriptedOutcome, scriptedCommits } from '../../test/support/scripted-commits.ts';
import { workloadDependencies } from './dependencies.ts';
import { attemptRevisionedSync, type RevisionedKind, type RevisionedSet } from './revisioned-set.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const REF = { resource: 'statefulsets', namespace: 'd', name: 'db' };
const KIND: RevisionedKind = { kind: 'StatefulSet', component: 'statefulset-controller', hashLabel: 'hash' };
const setOf = (more: Partial<KubeObject> = {}): KubeStatefulSet => ({
  ...more,
  metadata: { namespace: 'd', name: 'db', uid: 'u', resourceVersion: '7', generation: 1, ...more.metadata },
  spec: {
    selector: { matchLabels: { app: 'db' } },
    template: { metadata: { labels: { app: 'db' } }, spec: { containers: [{ name: 'c', image: 'v1' }] } },
  },
});
const OBSERVED = setOf({ status: { observedGeneration: 1 } });
const DELETED = setOf({ status: { observedGeneration: 1 }, metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } });
const orphan = (name: string, kind = 'Pod'): KubeObject => ({
  kind,
  metadata: { namespace: 'd', name, uid: `uid-${name}`, resourceVersion: '1', labels: { app: 'db' } },
});

interface Options {
  readonly orphans?: readonly KubeObject[];
  readonly kind?: Partial<RevisionedKind>;
  readonly outcomes?: readonly ScriptedOutcome[];
  readonly check?: (set: KubeStatefulSet) => Promise<object | undefined>;
}

/** One attempt. `commits`: the objects of each commit; `finished`: what the end of the attempt received. */
async function attempt(stored: KubeStatefulSet | undefined, { orphans, kind, outcomes = [], check }: Options = {}) {
  const { objects, written, commits } = scriptedCommits(outcomes, () => stored);
  const silent = () => {};
  const common = workDependencies({
    items: memoryItemStore(),
    clock: { nowMs: () => NOW_MS },
    random: { uuid: () => 'new', fraction: () => 0 },
    policy: defaultPolicy,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    meter: { add: silent },
  });
  const finished: RevisionedSet[] = [];
  const outcome = await attemptRevisionedSync<KubeStatefulSet>(
    workloadDependencies({ ...common, objects }, {}),
    { ref: REF, orphans },
    {
      kind: { ...KIND, ...kind },
      ...(check && { check }),
      async finish(_set, read) {
        finished.push(read);
        return { lookAgainAtMs: 5 };
      },
    },
  );
  return { outcome, written: written(), commits, finished };
}

describe('a sync of a set with revisions', () => {
  it('does nothing for one that no longer exists, and searches what a new one may adopt first', async () => {
    expect(await attempt(undefined)).toMatchObject({ outcome: {}, written: [], finished: [] });
    expect(await attempt(setOf())).toMatchObject({ outcome: { needsOrphans: true }, written: [], finished: [] });
  });

  it('ends with the report of its check, before it reads', async () => {
    const check = async ({ metadata }: KubeStatefulSet) => ({ lookAgainAtMs: metadata.name === 'db' ? 9 : 0 });
    expect(await attempt(OBSERVED, { check })).toMatchObject({
      outcome: { lookAgainAtMs: 9 },
      written: [],
      finished: [],
    });
    expect((await attempt(DELETED, { check: async () => undefined })).outcome).toEqual({ lookAgainAtMs: 5 });
  });

  it('of one that is being deleted ends without a revision', async () => {
    const { outcome, finished, written } = await attempt(DELETED);
    expect([outcome, written]).toEqual([{ lookAgainAtMs: 5 }, []]);
    expect(finished).toMatchObject([
      { pods: [], revisions: [], owner: { kind: 'StatefulSet', ref: REF, nowMs: NOW_MS } },
    ]);
    expect(finished[0]).not.toHaveProperty('current');
    expect(finished[0]?.owner).not.toHaveProperty('doneText');
  });

  it('has the texts of its events from its kind', async () => {
    const doneText = (setName: string) => ({ created: setName }) as never;
    const { finished } = await attempt(DELETED, { kind: { doneText } });
    expect(finished[0]?.owner.doneText).toEqual({ created: 'db' });
  });

  it('reads again after each change of owners, and after its revision was written', async () => {
    const { outcome, written, finished } = await attempt(OBSERVED, { outcomes: ['committed', { kind: 'contended' }] });
    expect([outcome, finished]).toEqual(['overtaken', []]);
    expect(written).toHaveLength(2);
    expect(written[0]).toEqual([expect.stringMatching(/^create db-/)]);
  });

  it('ends after 65 changes', async () => {
    const outcomes = Array.from({ length: 100 }, (): ScriptedOutcome => 'committed');
    const { outcome, written } = await attempt(OBSERVED, { orphans: [orphan('db-0')], outcomes });
    expect(outcome).toBe('overtaken');
    expect(written).toHaveLength(65);
    expect(written[0]).toEqual(['update db-0']);
  });

  it('adopts revisions, and the pods that it can own', async () => {
    const orphans = [orphan('db-0'), orphan('other'), orphan('db-r1', 'ControllerRevision')];
    const canOwn = (setName: string, podName: string) => podName.startsWith(`${setName}-`);
    const { outcome, commits } = await attempt(OBSERVED, { orphans, kind: { canOwn }, outcomes: ['committed'] });
    expect(outcome).toBe('overtaken');
    const adopted = commits[0]!.writes.map(({ ref }) => `${ref.resource} ${ref.name}`);
    expect(adopted.sort()).toEqual(['controllerrevisions db-r1', 'pods db-0']);
    const all = await attempt(OBSERVED, { orphans, outcomes: ['committed'] });
    expect(all.commits[0]!.writes).toHaveLength(3);
  });

  it('is overtaken when the change of owners is refused', async () => {
    const { outcome, written } = await attempt(OBSERVED, {
      orphans: [orphan('db-0')],
      outcomes: [{ kind: 'contended' }],
    });
    expect([outcome, written.length]).toEqual(['overtaken', 1]);
  });
});
