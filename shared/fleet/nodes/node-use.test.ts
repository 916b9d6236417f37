import { describe, expect, it } from 'vitest';
import type { KubePod } from '../../kinds/types.ts';
import { memoryItemStore } from '../../store/memory/item-store.ts';
import type { ObjectWrite } from '../../store/object-store.ts';
import { dropUse, podUseWrites, readNodeUses, useNode } from './node-use.ts';

it('a node is used once from each version, and its row is dropped at the version that was read', async () => {
  const items = memoryItemStore();
  const write = async (kind: 'use' | 'drop', seen: number) =>
    (await items.write((kind === 'use' ? useNode : dropUse)('n', seen))).kind;
  expect(await write('use', 1)).toBe('refused');
  expect(await write('use', 0)).toBe('written');
  expect(await write('use', 0)).toBe('refused');
  expect(await write('use', 1)).toBe('written');
  expect(await write('drop', 1)).toBe('refused');
  expect([...(await readNodeUses(items))]).toEqual([['n', 2]]);
  expect(await write('drop', 2)).toBe('written');
  expect((await readNodeUses(items)).size).toBe(0);
});

it('the versions of all nodes are read, whatever their partition', async () => {
  const items = memoryItemStore();
  const names = Array.from({ length: 100 }, (_, index) => `node-${index}`);
  for (const name of names) await items.write(useNode(name, 0));
  expect([...(await readNodeUses(items)).keys()].toSorted()).toEqual(names.toSorted());
});

describe('a write of a pod', () => {
  const ref = { resource: 'pods', namespace: 'd', name: 'p' };
  const pod = (nodeName: string | undefined, phase?: string, container: object = {}) =>
    ({ metadata: { name: 'p' }, spec: { nodeName, containers: [container] }, status: { phase } }) as KubePod;
  const resources = { requests: { cpu: '1' } };
  const uses = (before: KubePod | undefined, after: KubePod) => {
    const write: ObjectWrite =
      before === undefined
        ? { kind: 'create', ref, object: after }
        : { kind: 'update', ref, object: after, previous: before };
    return podUseWrites(write).map(({ key }) => key.sk);
  };

  it.each<[string, KubePod | undefined, KubePod, readonly string[]]>([
    ['it is created on it', undefined, pod('n'), ['n']],
    ['it is bound to it', pod(undefined), pod('n'), ['n']],
    ['it moves to it', pod('m'), pod('n'), ['n']],
    ['it runs on it again', pod('n', 'Failed'), pod('n', 'Running'), ['n']],
    ['it stays on it', pod('n'), pod('n', 'Running'), []],
    ['it is resized on it', pod('n'), pod('n', 'Running', { resources }), ['n']],
    ['another part of it changes', pod('n'), pod('n', 'Running', { image: 'i' }), []],
    ['it ends', pod('n'), pod('n', 'Failed'), []],
    ['it has ended', undefined, pod('n', 'Succeeded'), []],
    ['it has no node', undefined, pod(undefined), []],
  ])('uses a node when %s', (_text, before, after, names) => {
    expect(uses(before, after)).toEqual(names);
  });

  it('that deletes it uses none', () => {
    expect(podUseWrites({ kind: 'delete', ref, previous: pod('n') })).toEqual([]);
  });

  it('has no condition, and changes the version', async () => {
    const items = memoryItemStore();
    for (let times = 0; times < 2; times += 1)
      await items.transact(podUseWrites({ kind: 'create', ref, object: pod('n') }));
    expect([...(await readNodeUses(items))]).toEqual([['n', 2]]);
  });
});
