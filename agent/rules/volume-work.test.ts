import { describe, expect, it } from 'vitest';
import { answered, timedOut } from '../../test/support/agent-api.ts';
import { isDirectory, requestedBytes, volumesPath, volumeWorks } from './volume-work.ts';

const list = (...items: unknown[]) => answered(200, { kind: 'NodeVolumeWorkList', items });
const volume = (name: unknown) => ({ metadata: { name } });

describe('the work for volumes', () => {
  it('is asked for by the name of the node', () => {
    expect(volumesPath('edge/1')).toBe('/apis/nodekeeper.dev/v1alpha1/nodevolumes/edge%2F1');
  });

  it('is to make or to remove a volume', () => {
    const provision = volume('pvc-1');
    const [long, tooLong] = [`pvc-${'a'.repeat(63)}`, `pvc-${'a'.repeat(64)}`];
    const answer = list({ id: 'a', provision }, { id: 'b', remove: 'pvc-2' }, { id: 'c', remove: long });
    expect(volumeWorks(answer)).toEqual([
      { id: 'a', provision },
      { id: 'b', remove: 'pvc-2' },
      { id: 'c', remove: long },
    ]);
    expect(volumeWorks(list({ id: 'c', remove: tooLong }))).toEqual([]);
  });

  it.each([
    ['no object', 'pvc-1'],
    ['without an id', { provision: volume('pvc-1') }],
    ['with an id that is no text', { id: 7, provision: volume('pvc-1') }],
    ['with neither', { id: 'a' }],
    ['to remove what no volume is named', { id: 'a', remove: '../etc', provision: volume('pvc-1') }],
    ['to remove what only begins like one', { id: 'a', remove: 'pvc-1/../x' }],
    ['to remove what only ends like one', { id: 'a', remove: 'xpvc-1' }],
    ['to make what no volume is named', { id: 'a', provision: volume('..') }],
    ['to make what has no name', { id: 'a', provision: {} }],
  ])('is left out when it is malformed: %s', (_, item) => {
    expect(volumeWorks(list(item, { id: 'z', remove: 'pvc-9' }))).toEqual([{ id: 'z', remove: 'pvc-9' }]);
  });

  it.each([
    ['no answer', timedOut],
    ['a refusal', answered(404, { kind: 'NodeVolumeWorkList', items: [] })],
    ['no object', answered(200, 'a page')],
    ['another kind', answered(200, { kind: 'List', items: [] })],
    ['no list', answered(200, { kind: 'NodeVolumeWorkList', items: {} })],
  ])('is unknown by %s', (_, answer) => {
    expect(volumeWorks(answer)).toBeUndefined();
  });
});

describe('a volume', () => {
  it.each([
    [{ spec: { capacity: { storage: '1Mi' } } }, 1_048_576],
    [{ spec: { capacity: { storage: 'much' } } }, 0],
    [{ spec: { capacity: {} } }, 0],
    [{ spec: {} }, 0],
    [{}, 0],
  ])('asks for bytes: %j', (of, bytes) => {
    expect(requestedBytes({ metadata: {}, ...of })).toBe(bytes);
  });

  it.each([
    [{ spec: { volumeMode: 'Filesystem' } }, true],
    [{ spec: { volumeMode: 'Block' } }, false],
    [{ spec: {} }, true],
    [{}, true],
  ])('is a directory unless it is a block device: %j', (of, is) => {
    expect(isDirectory({ metadata: {}, ...of })).toBe(is);
  });
});
