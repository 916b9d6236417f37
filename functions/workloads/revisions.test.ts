import { describe, expect, it } from 'vitest';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { KubeControllerRevision, KubeObject, PodTemplateSpec } from '../../shared/kinds/types.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { workDependencies } from '../../shared/ticks/dependencies.ts';
import { type ScriptedOutcome, scriptedCommits } from '../../test/support/scripted-commits.ts';
import { workloadDependencies } from './dependencies.ts';
import type { PodOwner } from './pod-commits.ts';
import { currentRevision, deleteRevisions } from './revisions.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const SET: KubeObject = { metadata: { namespace: 'd', name: 'web', uid: 'su', resourceVersion: '7', generation: 1 } };
const owner: PodOwner = {
  kind: 'StatefulSet',
  ref: { resource: 'statefulsets', namespace: 'd', name: 'web' },
  object: SET,
  fence: 3,
  nowMs: NOW_MS,
  component: 'statefulset-controller',
};
const template = (image: string) =>
  ({
    metadata: { labels: { app: 'web' } },
    spec: { containers: [{ name: 'c', image }] },
  }) as unknown as PodTemplateSpec;

function scripted(outcomes: readonly ScriptedOutcome[]) {
  const { objects, commits, written } = scriptedCommits(outcomes);
  const silent = () => {};
  const common = workDependencies({
    items: memoryItemStore(),
    clock: { nowMs: () => NOW_MS },
    random: { uuid: () => 'new-uid', fraction: () => 0 },
    policy: defaultPolicy,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    meter: { add: silent },
  });
  const dependencies = workloadDependencies({ ...common, objects }, {});
  const current = (image: string, stored: readonly KubeControllerRevision[], collisionCount?: number) =>
    currentRevision(
      dependencies,
      owner,
      { object: SET, template: template(image), collisionCount, hashLabel: 'hash' },
      stored,
    );
  return { dependencies, commits, written, current };
}
/** The revision that a set writes for a template. */
async function revisionOf(
  image: string,
  stored: readonly KubeControllerRevision[] = [],
): Promise<KubeControllerRevision> {
  const { commits, current } = scripted(['committed']);
  expect(await current(image, stored)).toBe('written');
  const [write] = commits[0]!.writes;
  return (write?.kind === 'delete' ? undefined : write?.object) as KubeControllerRevision;
}

describe('the revision of a template', () => {
  it('is created with its owner, under the claim', async () => {
    const { commits, current } = scripted(['committed']);
    expect(await current('a', [])).toBe('written');
    const [write] = commits[0]!.writes;
    expect(write).toMatchObject({
      kind: 'create',
      ref: { resource: 'controllerrevisions', namespace: 'd' },
      object: {
        revision: 1,
        metadata: {
          uid: 'new-uid',
          creationTimestamp: '2026-01-01T00:00:00Z',
          ownerReferences: [{ kind: 'StatefulSet', name: 'web', uid: 'su', controller: true }],
        },
      },
    });
    expect(commits[0]?.extra).toEqual([
      expect.objectContaining({ kind: 'check' }),
      expect.objectContaining({ kind: 'update', set: { f: 4 } }),
    ]);
  });

  it('is the stored one while it is the highest, and is renumbered otherwise', async () => {
    const a = await revisionOf('a');
    const b = await revisionOf('b', [a]);
    expect(b.revision).toBe(2);
    const same = scripted([]);
    expect(await same.current('b', [a, b])).toMatchObject({ current: b });
    expect(same.commits).toEqual([]);
    const back = scripted(['committed']);
    expect(await back.current('a', [a, b])).toBe('written');
    expect(back.commits[0]?.writes).toMatchObject([{ kind: 'update', previous: a, object: { revision: 3 } }]);
    expect(back.commits[0]?.extra).toHaveLength(2);
    expect(await scripted([{ kind: 'contended' }]).current('a', [a, b])).toBe('overtaken');
  });

  it.each<ScriptedOutcome>([{ kind: 'contended' }, { kind: 'extraRefused', index: 0 }, { kind: 'conflict', index: 0 }])(
    'is not written by a sync that lost: %j',
    async (lost) => {
      const { current, commits } = scripted([lost]);
      expect(await current('a', [])).toBe('overtaken');
      expect(commits).toHaveLength(1);
    },
  );

  it('has another name after a collision, which the set counts', async () => {
    const ours = await revisionOf('a');
    const faster = scripted([{ kind: 'conflict', index: 0, current: ours }]);
    expect(await faster.current('a', [])).toBe('overtaken');
    expect(faster.commits).toHaveLength(1);
    const foreign = { ...ours, metadata: { ...ours.metadata, ownerReferences: [] } };
    const other = { ...(await revisionOf('b')), metadata: ours.metadata };
    for (const current of [foreign, other]) {
      const collided = scripted([{ kind: 'conflict', index: 0, current }, 'committed']);
      expect(await collided.current('a', [], 2)).toBe('overtaken');
      expect(collided.commits[1]?.writes).toMatchObject([
        { kind: 'update', ref: { name: 'web' }, object: { status: { collisionCount: 3 } } },
      ]);
    }
    const first = scripted([{ kind: 'conflict', index: 0, current: foreign }, 'committed']);
    await first.current('a', []);
    expect(first.commits[1]?.writes).toMatchObject([{ object: { status: { collisionCount: 1 } } }]);
  });
});

it('revisions beyond the limit are deleted if the set is as it was read', async () => {
  const surplus = [await revisionOf('a')];
  const { dependencies, commits, written } = scripted(['committed']);
  await deleteRevisions(dependencies, owner, []);
  expect(commits).toEqual([]);
  await deleteRevisions(dependencies, owner, surplus);
  expect(written()).toEqual([[`delete ${surplus[0]?.metadata.name}`]]);
  expect(commits[0]?.extra).toHaveLength(1);
});
